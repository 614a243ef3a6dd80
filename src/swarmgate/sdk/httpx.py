"""Transports for httpx's clients, and for SDKs that take one: `Client(transport=GateTransport())`."""

import httpx

from swarmgate.sdk.transport import AsyncSending, Sending


class GateTransport(Sending, httpx.BaseTransport):
    """For `httpx.Client`."""

    _library = httpx


class AsyncGateTransport(AsyncSending, httpx.AsyncBaseTransport):
    """For `httpx.AsyncClient`."""

    _library = httpx
