"""Absolute-form proxy requests and CONNECT: the same admission, and what each of them can and cannot see."""

import asyncio
import ssl

import pytest
import trustme
from outside import FAST, stage, whole

from eventually import eventually
from swarmgate.core.scope import Scope, key_hash

TUNNELS = FAST.replace("[egress]", '[egress]\nconnect = "tunnel"')


def run(act, *arguments, **settings):
    async def whole_run():
        async with stage(*arguments, **settings) as on:
            return await act(on)

    return asyncio.run(whole_run())


def test_an_absolute_form_request_goes_through():
    async def act(on):
        answer = await on.caller.ask("GET", "http://A.org:80/x?y", {"host": "a.org", "proxy-connection": "keep-alive"})
        return answer, on.world.hits

    answer, (hit,) = run(act)
    assert (answer.status, answer.body) == (200, b"page")
    assert (hit.host, hit.path) == ("a.org", "/x?y")
    assert "proxy-connection" not in hit.headers


def test_the_gate_itself_is_no_host_to_call():
    async def act(on):
        port = on.caller.port
        served = await on.caller.ask("GET", f"http://127.0.0.1:{port}/to/http/a.org/", {"host": f"127.0.0.1:{port}"})
        other = await on.caller.ask("GET", f"http://127.0.0.1:{port + 1}/", {"host": f"127.0.0.1:{port + 1}"})
        return served, other

    served, other = run(act)
    assert served.status == 200
    assert (other.status, other.said["code"]) == (403, "policy_address")


def test_redirects_of_the_proxy_are_left_to_the_caller():
    async def act(on):
        return await on.caller.ask("GET", "http://a.org/", {"host": "a.org"})

    assert run(act, lambda _hit: whole(302, b"", location="https://b.org/x")).headers["location"] == "https://b.org/x"


class Authority:
    """A certificate for the hosts of the world, and who trusts it."""

    def __init__(self):
        self.ca = trustme.CA()
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.ca.issue_cert("a.org", "b.org").configure_cert(self.server)
        self.client = ssl.create_default_context()
        self.ca.configure_trust(self.client)


async def over_tls(on, act, hello=None):
    """Let the world speak TLS; `hello` hears of each handshake."""
    authority = Authority()
    authority.server.sni_callback = hello
    on.gate.egress.resolver._tls = authority.client
    server = await asyncio.start_server(on.world.serve, "127.0.0.1", 0, ssl=authority.server)
    pins = dict.fromkeys(["a.org", "b.org", "d.io"], ("127.0.0.1", server.sockets[0].getsockname()[1]))
    on.gate.egress.resolver._pins = pins
    try:
        return await act()
    finally:
        server.close()


def test_upgrade_speaks_tls_to_the_host_and_redirects_stay_visible():
    async def act(on):
        on.world.reply = lambda hit: whole(302, b"", location=f"https://{hit.host}/next")
        asked = {"host": "a.org", "x-swarmgate-upgrade": "https"}
        return await over_tls(on, lambda: on.caller.ask("GET", "http://a.org/", asked)), on.world.hits

    answer, (hit,) = run(act)
    assert answer.headers["location"] == "http://a.org/next"
    assert "x-swarmgate-upgrade" not in hit.headers


def test_a_certificate_for_another_name_is_refused():
    """At once: no other attempt would see another one."""
    hellos = []

    async def act(on):
        return await over_tls(on, lambda: on.get("https://d.io/"), lambda *_: hellos.append(1)), on.world.hits

    answer, hits = run(act)
    assert (answer.status, answer.said["code"]) == (502, "target_tls")
    assert hits == []
    assert len(hellos) == 1


@pytest.mark.parametrize(
    ("method", "target", "wish"),
    [
        ("GET", "http://a.org/", "h2"),
        ("GET", "https://a.org/", "https"),
        ("GET", "/to/http/a.org/", "https"),  # what asks for TLS is not sent without
        ("CONNECT", "a.org:443", "https"),
    ],
)
def test_an_upgrade_that_is_none_is_the_caller_s_error(method, target, wish):
    host = {"CONNECT": target}.get(method, "gate" if target.startswith("/") else "a.org")
    said = {"host": host, "x-swarmgate-upgrade": wish}

    async def act(on):
        return await on.caller.ask(method, target, said), on.world.connections

    answer, connections = run(act)
    assert (answer.status, answer.said["param"], connections) == (400, "x-swarmgate-upgrade", 0)


def test_a_host_whose_requests_count_gets_no_tunnel():
    async def act(on):
        return await on.caller.ask("CONNECT", "a.org:443", {"host": "a.org:443"}), on.world.connections

    answer, connections = run(act)
    assert (answer.status, answer.said["code"], connections) == (403, "policy_tunnel_unmetered", 0)
    assert "x-swarmgate-upgrade: https" in answer.said["detail"]


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("127.0.0.1:443", 403, "policy_address"),
        ("169.254.169.254:80", 403, "policy_address"),
        ("a.org:22", 403, "policy_port"),
        ("a.org:25", 403, "policy_port"),
        ("a.org:", 400, "caller_port_missing"),
    ],
)
def test_tunnels_to_where_nothing_may_go(target, status, code):
    async def act(on):
        return await on.caller.ask("CONNECT", target, {"host": target}), on.world.connections

    answer, connections = run(act, text=TUNNELS)
    assert (answer.status, answer.said["code"], connections) == (status, code, 0)


async def opened(on, target="a.org:80"):
    await on.caller.send(f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n".encode())
    return await on.caller.streams[0].readuntil(b"\r\n\r\n")


def test_a_tunnel_carries_bytes_both_ways_and_is_counted_once():
    async def act(on):
        head = await opened(on)
        (call,) = on.gate.pump.open
        assert head == b"HTTP/1.1 200 Connection established\r\nx-request-id: %b\r\n\r\n" % call.id.encode()
        said = [await on.caller.ask("GET", f"/{n}") for n in range(3)]
        wire = call.wire
        on.caller.close()
        await eventually(lambda: on.ends)
        return said, wire.facts(), on.ends, on.world.hits

    said, facts, ends, hits = run(act, text=TUNNELS)
    assert [one.body for one in said] == [b"page"] * 3
    assert len(hits) == 3
    assert facts.sent_bytes > 60
    assert facts.got_bytes > 60
    assert ends == ["cancelled"]


def test_a_tunnel_that_the_host_ends_has_an_end():
    async def act(on):
        await opened(on)
        await on.caller.send(b"GET / HTTP/1.1\r\nhost: a.org\r\n\r\n")
        rest = await on.caller.streams[0].read()
        return rest, on.ends

    rest, ends = run(act, lambda _hit: b"", text=TUNNELS)
    assert (rest, ends) == (b"", ["answered"])


def test_a_tunnel_ends_with_the_key_that_opened_it():
    async def act(on):
        keeper = on.gate.ask_for_keys(required=True)
        keeper.replace(b"p", {key_hash("sgk_1", b"p"): Scope("1")})
        await on.caller.send(
            b"CONNECT a.org:80 HTTP/1.1\r\nhost: a.org:80\r\nproxy-authorization: Bearer sgk_1\r\n\r\n"
        )
        head = await on.caller.streams[0].readuntil(b"\r\n\r\n")
        keeper.replace(b"p", {})
        await eventually(lambda: not on.gate.pump.open, 2)
        return head, await on.caller.streams[0].read(), on.ends

    head, rest, why = run(act, text=TUNNELS)
    assert head.startswith(b"HTTP/1.1 200")
    assert (rest, why) == (b"", ["unknown_effect"])


def test_hi_15_bytes_behind_the_head_of_connect_are_refused():
    async def act(on):
        await on.caller.send(b"CONNECT a.org:80 HTTP/1.1\r\nhost: a.org:80\r\n\r\nGET / HTTP/1.1\r\n")
        return await on.caller.answer(), on.world.connections

    answer, connections = run(act, text=TUNNELS)
    assert (answer.status, answer.said["code"], connections) == (400, "caller_early_bytes", 0)


def test_a_tunnel_is_a_request_of_its_host_s_budget():
    text = '[policies.a]\nhosts = ["a.org"]\nlimits = ["1 per 1h"]\nheadroom = 100\nconnect = "tunnel"\n'

    async def act(on):
        first = await opened(on)
        on.caller.close()
        on.caller.streams = None
        return first, await on.caller.ask("CONNECT", "a.org:80", {"host": "a.org:80"}), on.world.connections

    first, second, connections = run(act, text=text)
    assert first.startswith(b"HTTP/1.1 200")
    assert (second.status, second.said["code"]) == (429, "policy_rate")
    assert connections <= 2
