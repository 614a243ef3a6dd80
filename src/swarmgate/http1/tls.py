"""
TLS both ways: towards targets verified and named, with no switch that a caller could reach to weaken it; towards callers
with the operator's certificate.

Here live the one context that all dials share (building it costs tens of milliseconds: the trust store is read) and the
turns in which handshakes begin. A handshake is half a millisecond of the loop, so few begin at once. One that waits for its
peer takes none, so it gives its turn back: neither a silent target nor one that is far away must hold up the others.
"""

import asyncio
import ssl
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from swarmgate.http1.plain_callers import CallerContext

MAX_HANDSHAKES: Final = 16  # 320 a second, where targets answer late
MAX_PER_NAME: Final = 8
TURN_S: Final = 0.05


def client_context(extra_ca: Path | None = None) -> ssl.SSLContext:
    """
    A context that checks certificate and name against the system's roots, and `extra_ca` (a PEM file) besides.

    TLS 1.2 or newer; only HTTP/1.1 is offered. Raises OSError or ssl.SSLError if `extra_ca` cannot be read.
    """
    context = ssl.create_default_context()
    if extra_ca is not None:
        context.load_verify_locations(extra_ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Contexts(NamedTuple):
    """TLS of one gate: towards targets, and towards callers; None = it speaks none there."""

    targets: ssl.SSLContext | None = None
    callers: ssl.SSLContext | None = None


NO_TLS: Final = Contexts()


def server_context(certificate: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """
    A context for callers: TLS 1.2 or newer, HTTP/1.1 only; with `client_ca` they must show a certificate by it.

    `renew` has it use what the files hold by then. Raises OSError or ssl.SSLError for files that cannot be used.
    """
    context = CallerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    renew(context, certificate, key)
    return context


def renew(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Show this certificate to whoever comes from now on. Raises as `server_context`."""
    context.load_cert_chain(certificate, key, password="")  # nobody could type one


class DialTurn:
    """It ends with its dial, or after TURN_S."""

    __slots__ = ("_held", "_timer")

    def __init__(self, *held: asyncio.Semaphore) -> None:
        self._held = held
        self._timer = asyncio.get_running_loop().call_later(TURN_S, self.end)

    def end(self) -> None:
        """Let the next one begin."""
        held, self._held = self._held, ()
        self._timer.cancel()
        for one in held:
            one.release()


class Handshakes:
    """At most MAX_HANDSHAKES have their turn at once, MAX_PER_NAME of them for one name."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(MAX_HANDSHAKES)
        self._names: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def turn(self, name: str) -> DialTurn:
        """Wait for a turn; whoever has it ends it."""
        mine = self._names.get(name)
        if mine is None:
            mine = self._names[name] = asyncio.Semaphore(MAX_PER_NAME)
        await mine.acquire()
        try:
            await self._turns.acquire()
        except BaseException:
            mine.release()
            raise
        return DialTurn(mine, self._turns)
