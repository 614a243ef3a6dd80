import asyncio
import os
import socket
import ssl
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from plain_relay import LOOPS, run
from wire import Owner

from certificates import made_in
from eventually import eventually
from swarmgate.http1.dial import Dialler, Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.tls import MAX_HANDSHAKES, MAX_PER_NAME, client_context
from swarmgate.http1.upstream_end import UpstreamEnd

NAMES = {"expired": "old", "signed by itself": "own"}  # of the certificates
on_both_loops = pytest.mark.parametrize("loop_name", sorted(LOOPS))
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Home:
    def on_free(self, end):
        pass

    def on_closed(self, end):
        pass


class Rude(asyncio.Protocol):
    """Speaks before it is asked, or says nothing and goes."""

    def __init__(self, word):
        self.word = word

    def connection_made(self, transport):
        if self.word:
            transport.write(self.word)
        else:
            transport.close()


class Greeter(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(SIZED)


async def dial(endpoint: Endpoint, connect_s: float = 5.0) -> UpstreamEnd | Fault:
    loop = asyncio.get_running_loop()
    sweep, outcomes = Sweep(loop), []
    Dialler(loop, connect_s=connect_s).dial(endpoint, lambda: UpstreamEnd(sweep, Home()), outcomes.append)
    await eventually(lambda: outcomes)
    assert len(outcomes) == 1
    return outcomes[0]


async def exchange(end: UpstreamEnd) -> bytes:
    owner = Owner()
    assert end.send(owner, b"GET", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    await eventually(lambda: owner.events and owner.events[-1][0] in {"end", "lost"})
    return owner.body


async def serve(context: ssl.SSLContext | None = None) -> tuple[asyncio.Server, int]:
    server = await asyncio.get_running_loop().create_server(Greeter, "127.0.0.1", 0, ssl=context)
    return server, server.sockets[0].getsockname()[1]


@on_both_loops
def test_an_open_port_is_reached_and_nagle_is_off(loop_name):
    async def scenario():
        server, port = await serve()
        end = await dial(Endpoint(("127.0.0.1",), port))
        assert await exchange(end) == b"hello"
        link = end._transport.get_extra_info("socket")
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        end.abandon()
        server.close()

    run(loop_name, scenario)


@on_both_loops
def test_a_closed_port_is_refused_and_the_next_address_is_tried(loop_name):
    async def scenario():
        server, port = await serve()
        end = await dial(Endpoint(("::1", "127.0.0.1"), port))
        assert await exchange(end) == b"hello"
        end.abandon()
        server.close()
        await server.wait_closed()
        assert await dial(Endpoint(("127.0.0.1",), port)) is Fault.CONNECT_REFUSED
        assert await dial(Endpoint((), port)) is Fault.CONNECT_REFUSED
        assert await dial(Endpoint(("localhost",), port)) is Fault.CONNECT_REFUSED

    run(loop_name, scenario)


@on_both_loops
def test_a_port_that_never_answers_costs_the_limit_and_leaves_nothing_open(loop_name):
    async def scenario():
        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        address = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]  # the kernel queues backlog + 1, then answers no more SYN
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        assert await dial(Endpoint(("127.0.0.1",), address[1]), connect_s=0.1) is Fault.CONNECT_TIMEOUT
        for link in (*fillers, full):
            link.close()

    run(loop_name, scenario)


@on_both_loops
def test_up_12_an_address_that_never_answers_costs_its_share_and_the_next_serves(loop_name):
    async def scenario():
        server, port = await serve()
        full = socket.create_server(("127.0.0.2", port), backlog=0)
        fillers = [socket.socket() for _ in range(4)]  # see above
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        end = await dial(Endpoint(("127.0.0.2", "127.0.0.1"), port), connect_s=1.0)
        assert await exchange(end) == b"hello"
        end.abandon()
        server.close()
        for link in (*fillers, full):
            link.close()

    run(loop_name, scenario)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate authority and a certificate for `localhost`, made for this run."""
    folder = made_in(tmp_path_factory.mktemp("tls"), expired=("old",), own=("own",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    return folder / "ca.pem", context


@on_both_loops
def test_a_verified_target_is_spoken_to(loop_name, certificates):
    async def scenario():
        ca, server_context = certificates
        server, port = await serve(server_context)
        end = await dial(Endpoint(("127.0.0.1",), port, client_context(ca), "localhost"))
        assert await exchange(end) == b"hello"
        end.abandon()
        server.close()

    run(loop_name, scenario)


@on_both_loops
@pytest.mark.parametrize(("trusted", "name"), [(False, "localhost"), (True, "other.example")])
def test_up_13_an_unknown_authority_or_another_name_is_refused(loop_name, certificates, trusted, name):
    async def scenario():
        ca, server_context = certificates
        server, port = await serve(server_context)
        context = client_context(ca if trusted else None)
        assert await dial(Endpoint(("127.0.0.1",), port, context, name)) is Fault.UNTRUSTED
        server.close()

    run(loop_name, scenario)


def old_tls(context):
    """A server of before TLS 1.2."""
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1


class Resets(asyncio.Protocol):
    """Hears the client's hello and resets the connection."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, _data):
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.transport.abort()


@on_both_loops
@pytest.mark.parametrize("how", ["expired", "signed by itself", "old", "reset"])
def test_up_13_what_is_no_valid_tls_is_refused(loop_name, certificates, how):
    ca, _ = certificates
    folder = ca.parent
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{NAMES.get(how, 'leaf')}.pem", folder / f"{NAMES.get(how, 'leaf')}.key")
    if how == "old":
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            old_tls(context)

    async def scenario():
        make, tls = (Resets, None) if how == "reset" else (Greeter, context)
        server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        fault = Fault.UNTRUSTED if how in NAMES else Fault.TLS_FAILED
        assert await dial(Endpoint(("127.0.0.1",), port, client_context(ca), "localhost")) is fault
        server.close()

    run(loop_name, scenario)


@on_both_loops
def test_a_target_that_speaks_no_tls_is_refused_and_a_silent_one_times_out(loop_name):
    async def scenario():
        server, port = await serve()
        context = client_context()
        assert await dial(Endpoint(("127.0.0.1",), port, context, "localhost")) is Fault.TLS_FAILED
        server.close()
        silent = socket.create_server(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert await dial(Endpoint(("127.0.0.1",), port, context, "localhost"), 0.1) is Fault.CONNECT_TIMEOUT
        silent.close()

    run(loop_name, scenario)


class Silent(asyncio.Protocol):
    """Takes the client's hello and says nothing."""

    def __init__(self, heard):
        self.heard = heard

    def data_received(self, data):
        self.heard.append(self)


def test_few_handshakes_run_at_once_and_plain_dials_do_not_wait_for_them():
    async def scenario():
        loop, heard, outcomes = asyncio.get_running_loop(), [], []
        server = await loop.create_server(lambda: Silent(heard), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        dialler, sweep, context = Dialler(loop), Sweep(loop), client_context()
        for at in range(3 * MAX_HANDSHAKES):
            endpoint = Endpoint(("127.0.0.1",), port, context, f"host{at}")
            dialler.dial(endpoint, lambda: UpstreamEnd(sweep, Home()), outcomes.append)
        dialler.dial(Endpoint(("127.0.0.1",), port), lambda: UpstreamEnd(sweep, Home()), outcomes.append)
        await eventually(lambda: outcomes and len(heard) == MAX_HANDSHAKES)
        assert isinstance(outcomes[0], UpstreamEnd)
        outcomes[0].abandon()
        dialler.close()
        await eventually(lambda: not dialler._tasks)
        assert len(heard) == MAX_HANDSHAKES
        server.close()

    run("asyncio", scenario)


@on_both_loops
def test_a_silent_target_does_not_hold_up_the_handshakes_of_others(loop_name, certificates):
    async def scenario():
        ca, server_context = certificates
        loop, heard, outcomes = asyncio.get_running_loop(), [], []
        mute = await loop.create_server(lambda: Silent(heard), "127.0.0.1", 0)
        server, port = await serve(server_context)
        dialler, sweep, context = Dialler(loop), Sweep(loop), client_context(ca)
        for _ in range(100):
            endpoint = Endpoint(("127.0.0.1",), mute.sockets[0].getsockname()[1], context, "mute")
            dialler.dial(endpoint, lambda: UpstreamEnd(sweep, Home()), outcomes.append)
        await eventually(lambda: heard)
        endpoint = Endpoint(("127.0.0.1",), port, context, "localhost")
        dialler.dial(endpoint, lambda: UpstreamEnd(sweep, Home()), outcomes.append)
        await eventually(lambda: outcomes)
        assert isinstance(outcomes[0], UpstreamEnd)
        assert len(heard) <= MAX_PER_NAME
        outcomes[0].abandon()
        dialler.close()
        await eventually(lambda: not dialler._tasks)
        for closing in (server, mute):
            closing.close()

    run(loop_name, scenario)


def test_no_context_is_weaker_than_the_default():
    context = client_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@on_both_loops
@pytest.mark.parametrize("word", [SIZED, b""])
def test_a_target_that_speaks_or_goes_before_it_is_asked_is_no_connection(loop_name, certificates, word):
    ca, context = certificates

    async def scenario():
        server = await asyncio.get_running_loop().create_server(lambda: Rude(word), "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        for _ in range(20):  # its word comes with the handshake or behind it
            end = await dial(Endpoint(("127.0.0.1",), port, client_context(ca), "localhost"))
            assert end is Fault.TLS_FAILED or isinstance(end, UpstreamEnd)
            if isinstance(end, UpstreamEnd):
                await eventually(end.is_closing)
        server.close()

    run(loop_name, scenario)


@on_both_loops
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted by /proc")
def test_a_dial_that_is_cancelled_at_any_moment_leaves_nothing_open(loop_name, certificates):
    here = Path(__file__).parent
    words = [sys.executable, str(here / "cancelled_dials.py"), loop_name, str(certificates[0].parent)]
    path = os.pathsep.join([str(here.parent), *sys.path])
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
