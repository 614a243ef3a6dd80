"""Transports for httpx2's clients, and for SDKs that take one: `Client(transport=GateTransport())`."""

import httpx2

from swarmgate.sdk.transport import AsyncSending, Sending


class GateTransport(Sending, httpx2.BaseTransport):
    """For `httpx2.Client`."""

    _library = httpx2


class AsyncGateTransport(AsyncSending, httpx2.AsyncBaseTransport):
    """For `httpx2.AsyncClient`."""

    _library = httpx2
