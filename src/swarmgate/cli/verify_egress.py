"""
`swarmgate verify-egress`: shows that nothing leaves around the gate, from where agents run.

It tries each way out that a program without special rights has, to a canary that the operator runs outside, and whether
the gate itself can be reached. What got through is a leak; what nobody answered is told as silent, since only the
canary's own count can say whether it arrived. `--serve` is that canary.
"""

import asyncio
import errno
import json
import socket
import struct
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from swarmgate.cli.exits import Exit

EXAMPLE = "Example: swarmgate verify-egress --canary 203.0.113.7:9999"
WITHIN_S = 2.0
NONCE = b"swarmgate canary"
OUTSIDE_6 = "2606:4700:4700::1111"  # any address of the IPv6 internet: a route to it is asked for, nothing is sent
NAME = "swarmgate-canary.example.com"
_SHUT = frozenset(
    {
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.EACCES,
        errno.EPERM,
        errno.EADDRNOTAVAIL,
        errno.EAFNOSUPPORT,
        errno.ENETDOWN,
    }
)


class State(StrEnum):
    """What became of one attempt."""

    BLOCKED = "blocked"  # the system refused to send it
    SILENT = "silent"  # nobody answered in time: dropped, or lost, or answered to nobody
    LEAKED = "leaked"


class Found(NamedTuple):
    """One way out, what became of it, and what shows that."""

    way: str
    state: State
    detail: str


class Canary(NamedTuple):
    """Where the canary listens, TCP and UDP; an IP address, since a name would have to be resolved."""

    host: str
    port: int

    @property
    def family(self) -> socket.AddressFamily:
        """IPv4 or IPv6."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


def _tcp(canary: Canary) -> str:
    with socket.socket(canary.family, socket.SOCK_STREAM) as link:
        link.settimeout(WITHIN_S)
        link.connect(canary)
        return f"connected to {canary.host}:{canary.port}"


def _udp(canary: Canary, sent: bytes = NONCE) -> str:
    with socket.socket(canary.family, socket.SOCK_DGRAM) as link:
        link.settimeout(WITHIN_S)
        link.sendto(sent, canary)
        link.recvfrom(512)
        return f"{canary.host}:{canary.port} answered a datagram"


def _dns(canary: Canary) -> str:
    labels = b"".join(bytes([len(one)]) + one.encode() for one in NAME.split("."))
    return _udp(Canary(canary.host, 53), struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1")


def _resolver(_canary: Canary) -> str:
    try:
        socket.getaddrinfo(NAME, 443, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno == socket.EAI_NONAME:  # somebody answered that there is no such name
            return "a name server outside answered"
        raise OSError(errno.ENETUNREACH, str(error)) from None
    return "a name server outside answered"


def _ipv6(_canary: Canary) -> str:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as link:
        link.connect((OUTSIDE_6, 443))  # no packet leaves
        return f"there is a route to {OUTSIDE_6}"


def _frames(_canary: Canary) -> str:
    if not hasattr(socket, "AF_PACKET"):
        raise OSError(errno.EAFNOSUPPORT, "this system has no packet sockets")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        return "raw frames may be sent; take CAP_NET_RAW away"


WAYS: dict[str, Callable[[Canary], str]] = {
    "TCP": _tcp,
    "UDP (QUIC)": _udp,
    "DNS to the canary": _dns,
    "the system's resolver": _resolver,
    "IPv6 route": _ipv6,
    "raw frames": _frames,
}


def attempt(way: str, canary: Canary) -> Found:
    """Try one way out."""
    try:
        return Found(way, State.LEAKED, WAYS[way](canary))
    except TimeoutError:
        return Found(way, State.SILENT, f"no answer within {WITHIN_S:g} s")
    except ConnectionRefusedError:
        return Found(way, State.LEAKED, "refused by the other side: the packet got there")
    except OSError as error:
        state = State.BLOCKED if error.errno in _SHUT else State.SILENT
        return Found(way, state, error.strerror or str(error))


def reaches(gate: str) -> bool:
    """Whether the gate answers there, no proxy asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{gate.rstrip('/')}/swarmgate/v1/alive?agent=verify-egress", timeout=WITHIN_S):
            return True
    except urllib.error.HTTPError:
        return True  # an answer, if not a friendly one
    except (OSError, ValueError):
        return False


class Listener(asyncio.DatagramProtocol):
    """The canary's ear for datagrams: it says what came and answers."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It listens."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Something got out."""
        self._say(f"UDP from {addr[0]}:{addr[1]}, {len(data)} bytes")
        self._transport.sendto(data, addr)  # type: ignore[attr-defined]  # it is a datagram transport


@asynccontextmanager
async def listening(canary: Canary, say: Callable[[str], None]) -> AsyncIterator[int]:
    """Hear everything that arrives at the canary while this lasts; the port that was bound."""

    async def tcp(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        say(f"TCP from {peer[0]}:{peer[1]}")
        writer.close()

    async with await asyncio.start_server(tcp, canary.host, canary.port) as server:
        port = int(server.sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        ear, _ = await loop.create_datagram_endpoint(lambda: Listener(say), local_addr=(canary.host, port))
        try:
            yield port
        finally:
            ear.close()


def verify_egress(
    canary: Annotated[str, typer.Option(help="IP:PORT of a listener outside (see --serve).", metavar="IP:PORT")] = "",
    gate: Annotated[str, typer.Option(help="The gate's data port, as agents reach it.")] = "http://127.0.0.1:8787",
    serve: Annotated[str, typer.Option(help="Be the canary on IP:PORT, until Ctrl-C.", metavar="IP:PORT")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Show that nothing leaves around the gate; run it where agents run."""
    if serve:
        _serve(_address("--serve", serve))
        return
    if not canary:
        raise _usage("--canary is missing: name a listener outside, or be one with --serve")
    where = _address("--canary", canary)
    found = [attempt(way, where) for way in WAYS]
    is_there = reaches(gate)
    if as_json:
        print(
            json.dumps({"gate": gate, "gate_reachable": is_there, "ways": [one._asdict() for one in found]}, indent=2)
        )
    else:
        _show(found, gate, is_there=is_there)
    if any(one.state is State.LEAKED for one in found):
        raise typer.Exit(Exit.FAILED)
    if not is_there:
        raise typer.Exit(Exit.UNREACHABLE)


def _serve(where: Canary) -> None:
    async def until_interrupted() -> None:
        async with listening(where, lambda text: print(text, flush=True)) as port:
            print(f"canary on {where.host}:{port}, TCP and UDP; what is printed below got out", flush=True)
            await asyncio.Event().wait()

    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(until_interrupted())
    except OSError as error:
        print(f"{where.host}:{where.port} cannot be listened on: {error.strerror}", file=sys.stderr)
        raise typer.Exit(Exit.UNREACHABLE) from None


def _show(found: list[Found], gate: str, *, is_there: bool) -> None:
    table = Table("Way out", "What became of it", "What shows that", title="Around the gate")
    for one in found:
        style = "bold red" if one.state is State.LEAKED else ""
        table.add_row(one.way, one.state.value, one.detail, style=style)
    console = Console()
    console.print(table)
    console.print(f"The gate at {gate} {'answers' if is_there else 'does not answer'}.")
    if any(one.state is State.SILENT for one in found):
        console.print("Silent is not proof: look at what the canary printed, and at the firewall's counters.")


def _address(option: str, text: str) -> Canary:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, host)
            if port.isascii() and port.isdigit() and int(port) <= 65_535:
                return Canary(host, int(port))
    raise _usage(f"{option} {text!r} is no IP address with a port, as 203.0.113.7:9999")


def _usage(text: str) -> typer.Exit:
    print(text, file=sys.stderr)
    return typer.Exit(Exit.USAGE)
