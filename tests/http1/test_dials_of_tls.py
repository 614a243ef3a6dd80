"""Dials with TLS when many come at once: their turns, their limit, and how long a target may take to say goodbye."""

import asyncio
import contextlib
import socket
import ssl
import threading

import pytest
from plain_relay import LOOPS, run
from wire import Owner

from certificates import made_in
from eventually import eventually
from swarmgate.http1.dial import Dialler, Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.tls import MAX_PER_NAME, Handshakes, client_context
from swarmgate.http1.upstream_end import UpstreamEnd

FAR_S, DIALS = 0.05, 200
LAST_ANSWER = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello"
on_both_loops = pytest.mark.parametrize("loop_name", sorted(LOOPS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_in(tmp_path_factory.mktemp("tls"))


class Home:
    def __init__(self):
        self.closed = []

    def on_free(self, end):
        pass

    def on_closed(self, end):
        self.closed.append(end)


def own_context(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    return context


def far_away(listener, context):
    """A target that begins each handshake as late as one whose answers are long on their way."""

    def begin(link):
        with contextlib.suppress(OSError), context.wrap_socket(link, server_side=True) as one:
            one.recv(1)

    for _ in range(DIALS):
        threading.Timer(FAR_S, begin, (listener.accept()[0],)).start()


@on_both_loops
def test_many_dials_to_a_target_that_is_far_away_are_all_served(loop_name, folder):
    """What a dial waits for its turn is no part of its limit: it was, and of 300 calls at once 126 failed."""

    async def scenario():
        outcomes, context = [], client_context(folder / "ca.pem")
        dialler, sweep = Dialler(asyncio.get_running_loop(), connect_s=1.0), Sweep(asyncio.get_running_loop())
        endpoint = Endpoint(("127.0.0.1",), listener.getsockname()[1], context, "localhost")
        for _ in range(DIALS):
            dialler.dial(endpoint, lambda: UpstreamEnd(sweep, Home()), outcomes.append)
        await eventually(lambda: len(outcomes) == DIALS, 20)
        ends = [outcome for outcome in outcomes if isinstance(outcome, UpstreamEnd)]
        for end in ends:
            end.abandon()
        assert len(ends) == DIALS

    with socket.create_server(("127.0.0.1", 0), backlog=DIALS) as listener:
        thread = threading.Thread(target=far_away, args=(listener, own_context(folder)))
        thread.start()
        run(loop_name, scenario)
        thread.join()


def test_a_turn_ends_by_itself_and_once():
    async def scenario():
        handshakes, begun = Handshakes(), []

        async def dial():
            begun.append(await handshakes.turn("one"))

        tasks = [asyncio.ensure_future(dial()) for _ in range(MAX_PER_NAME + 1)]
        await eventually(lambda: len(begun) == MAX_PER_NAME)
        await eventually(lambda: len(begun) == MAX_PER_NAME + 1)
        await asyncio.gather(*tasks)
        for turn in begun:
            turn.end()
            turn.end()
        again = [await handshakes.turn("one") for _ in range(MAX_PER_NAME)]
        waits = asyncio.ensure_future(dial())
        await asyncio.sleep(0)
        assert not waits.done()  # who ends a turn twice makes no second one of it
        again[0].end()
        await waits

    run("asyncio", scenario)


@on_both_loops
def test_a_target_that_does_not_say_goodbye_is_left_soon(loop_name, folder):
    """The loops wait for 30 s, in which the connection counts as one of its pool's."""
    left = threading.Event()

    def last_answer(listener):
        with own_context(folder).wrap_socket(listener.accept()[0], server_side=True) as link:
            link.recv(65_536)
            link.sendall(LAST_ANSWER)
            left.wait(30)

    async def scenario():
        loop, outcomes, home, owner = asyncio.get_running_loop(), [], Home(), Owner()
        endpoint = Endpoint(("127.0.0.1",), listener.getsockname()[1], client_context(folder / "ca.pem"), "localhost")
        sweep = Sweep(loop)
        Dialler(loop).dial(endpoint, lambda: UpstreamEnd(sweep, home), outcomes.append)
        await eventually(lambda: outcomes)
        assert outcomes[0].send(owner, b"GET", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await eventually(lambda: owner.events and owner.events[-1][0] == "end")
        await eventually(lambda: home.closed == outcomes)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=last_answer, args=(listener,))
        thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(left.set)
            run(loop_name, scenario)


@on_both_loops
@pytest.mark.parametrize("ends_tls", [True, False])
@pytest.mark.parametrize("framing", ["until close", "sized"])
def test_up_01_only_the_end_of_tls_ends_a_body_that_has_no_other_end(loop_name, framing, ends_tls, folder):
    """Anybody on the way can end a connection, and so cut an answer where it looks whole."""
    head = b"HTTP/1.1 200 OK\r\n" + (b"content-length: 5\r\n" if framing == "sized" else b"") + b"\r\n"

    def answer(listener):
        with own_context(folder).wrap_socket(listener.accept()[0], server_side=True) as link:
            link.recv(65_536)
            link.sendall(head + b"hello")
            if ends_tls:
                with contextlib.suppress(OSError):
                    link.unwrap()

    async def scenario():
        outcomes, home, owner = [], Home(), Owner()
        endpoint = Endpoint(("127.0.0.1",), listener.getsockname()[1], client_context(folder / "ca.pem"), "localhost")
        sweep = Sweep(asyncio.get_running_loop())
        Dialler(sweep._loop).dial(endpoint, lambda: UpstreamEnd(sweep, home), outcomes.append)
        await eventually(lambda: outcomes)
        assert outcomes[0].send(owner, b"GET", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await eventually(lambda: home.closed == outcomes)
        whole = framing == "sized" or ends_tls
        assert owner.events[1:] == [("end", b"hello") if whole else ("lost", Fault.TRUNCATED, True)]
        assert owner.body == b"hello"

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        run(loop_name, scenario)
        thread.join()


@pytest.mark.parametrize("name", ["a..b", "a" * 64])
def test_a_name_that_tls_cannot_say_is_a_fault_like_any_other(name, folder):
    """A dial that told nothing would count in its pool for ever."""

    async def scenario():
        loop, outcomes = asyncio.get_running_loop(), []
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        endpoint = Endpoint(("127.0.0.1",), server.sockets[0].getsockname()[1], client_context(), name)
        sweep = Sweep(loop)
        Dialler(loop).dial(endpoint, lambda: UpstreamEnd(sweep, Home()), outcomes.append)
        await eventually(lambda: outcomes == [Fault.TLS_FAILED])
        server.close()

    run("asyncio", scenario)
