"""Complaints of other gateways' users about quotas and about what is left behind; the numbers as in test_complaints.py."""

import asyncio

import anthropic
import openai
import pytest
from sdks import ASK, claude, gpt
from stage import STREAM_HEAD, TARGET, UNARY, either, framed, stage, token, warm, whole
from test_front import request
from wires import Bench, Wire

from eventually import eventually
from swarmgate.gate.service import Door

BODY = b'{"model":"m"}'


def callers(bench, many):
    """Connections of as many callers, and what each hears."""
    made = [(Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 1_000), Wire()) for _ in range(many)]
    for door, wire in made:
        door.connection_made(wire)
    return made


def ask(agent, *lines):
    return request("/v1/chat/completions", BODY, "POST", f"x-swarmgate-agent: {agent}", *lines)


def answer_all(bench, served=lambda end: None):
    """Whatever is to be dialled is reached, and whatever was sent is answered."""
    while bench.dialler.dials:
        bench.dialler.succeed()
    for end, wire in bench.dialler.opened:
        if wire.written and not wire.closing:
            wire.written.clear()
            served(end)
            end.data_received(whole(UNARY))


def test_llm_gateways_8_keys_have_limits_of_their_own_and_one_line():
    text = TARGET.format(port=9).replace('{ first = "env:KEY" }', '{ a = "env:KEY", b = "env:KEY", c = "env:KEY" }')
    bench = Bench(text.replace("900000000 per 1s", "10 per 60s"))
    warm(bench.gate)
    waiting = callers(bench, 40)
    for door, _ in waiting:
        door.data_received(request("/v1/chat/completions", BODY, "POST", "x-swarmgate-wait: 300s"))
    sent = []
    for _ in range(1_200):
        answer_all(bench)
        for _, wire in waiting:
            if wire.written:
                head = wire.written.pop().lower()
                assert head.startswith(b"http/1.1 200 ")
                sent.append((head.partition(b"x-swarmgate-key-id: ")[2][:1], int(bench.loop.now_s * 1_000)))
        bench.pass_time(250)
        if len(sent) == 40:
            break
    assert len(sent) == 40
    for key in (b"a", b"b", b"c"):
        at_ms = [at for one, at in sent if one == key]
        assert at_ms
        assert max(sum(start <= at < start + 60_000 for at in at_ms) for start in at_ms) <= 10


def test_llm_gateways_9_one_who_asks_for_a_lot_delays_the_others_by_four():
    bench = Bench(TARGET.format(port=9) + 'limits = ["1 concurrent"]\n')
    warm(bench.gate)
    flood, others = callers(bench, 30), callers(bench, 5)
    for door, _ in flood:
        door.data_received(ask("greedy", "x-swarmgate-wait: 60s"))
        while bench.dialler.dials:
            bench.dialler.succeed()
    refused = [wire.written[0] for _, wire in flood if wire.written]
    assert len(refused) == 30 - 1 - 4  # one runs, four wait
    assert all(b"policy_agent_backlog" in said for said in refused)
    for number, (door, _) in enumerate(others):
        door.data_received(ask(f"a{number}", "x-swarmgate-wait: 60s"))
    for _ in range(1 + 4 + 5):
        answer_all(bench)
        bench.pass_time(250)
    assert all(wire.written[0].startswith(b"HTTP/1.1 200 ") for _, wire in others)


def served_by(bench, refused=b""):
    """The key that serves the next request of one session; a request with the secret `refused` is answered with a 429."""
    said = b'{"model":"m","prompt_cache_key":"s","user":"s"}'
    ((door, caller),) = callers(bench, 1)
    door.data_received(request("/v1/chat/completions", said, "POST", "x-session-id: s", "cookie: session=s"))
    while not caller.written:
        while bench.dialler.dials:
            bench.dialler.succeed()
        ((end, wire),) = [(end, wire) for end, wire in bench.dialler.opened if wire.written]
        is_refused = refused and refused in b"".join(wire.written)
        wire.written.clear()
        end.data_received(whole(LIMIT, "429 Too Many Requests", "retry-after: 60\r\n") if is_refused else whole(UNARY))
    return caller.written.pop().lower().partition(b"x-swarmgate-key-id: ")[2].partition(b"\r")[0]


def test_llm_gateways_19_a_session_holds_to_no_key_that_is_out(tmp_path):
    (tmp_path / "b").write_text("sk-2")
    bench = Bench(TARGET.format(port=9).replace('first = "env:KEY"', f'a = "env:KEY", b = "file:{tmp_path}/b"'))
    warm(bench.gate)
    assert {served_by(bench) for _ in range(4)} == {b"a", b"b"}  # nothing is sticky to begin with
    assert served_by(bench, b"sk-1") == b"b"
    assert {served_by(bench) for _ in range(4)} == {b"b"}
    bench.pass_time(90_000)
    assert b"a" in {served_by(bench) for _ in range(20)}


NO_MONEY = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
LIMIT = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}
TOMORROW = {"error": {"message": "on requests per day (RPD): Limit 200, Used 200, Requested 1."}}


@pytest.mark.parametrize(("said", "extra"), [(NO_MONEY, ""), (TOMORROW, "retry-after: 40000\r\n")])
def test_llm_gateways_23_a_quota_that_is_used_up_is_asked_once_for_each_key(said, extra):
    async def refuses(_stand_in, _hit, writer):
        writer.write(whole(said, "429 Too Many Requests", extra))

    async def play():
        text = TARGET.replace('first = "env:KEY"', 'first = "env:KEY", second = "env:OTHER_KEY"')
        async with stage(refuses, text) as on, gpt(on.port) as client:
            for _ in range(5):
                with pytest.raises(openai.APIStatusError) as caught:
                    await client.chat.completions.create(**ASK, extra_headers={"x-swarmgate-wait": "0s"})
            assert len(on.stand_in.hits) == 2
            if extra:
                assert caught.value.body["deferral"]["not_before_ms"] > 39_000_000
                assert caught.value.response.headers["x-should-retry"] == "false"

    asyncio.run(play())


def test_llm_gateways_42_our_own_limit_has_a_name_of_its_own():
    async def play():
        async with stage(either, TARGET + 'limits = ["2 per 60s"]\n') as on, gpt(on.port) as client:
            asked = ASK | {"extra_headers": {"x-swarmgate-wait": "0s"}}
            for _ in range(2):
                await client.chat.completions.create(**asked)
            with pytest.raises(openai.RateLimitError) as ours:
                await client.chat.completions.create(**asked)
            assert ours.value.code in {"policy_rate", "policy_slots"}
            assert len(on.stand_in.hits) == 2

    asyncio.run(play())


def test_llm_gateways_53_many_who_leave_leave_nothing():
    async def endless(stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(token("a")))
        await writer.drain()
        await stand_in.go_on.wait()

    async def leave(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("/v1/chat/completions", b'{"model":"m","stream":true}'))
        await reader.readuntil(b"a")
        writer.transport.abort()

    async def play():
        async with stage(endless) as on:
            await asyncio.gather(*[leave(on.port) for _ in range(50)])
            await eventually(lambda: on.ends == ["cancelled"] * 50)
            await eventually(lambda: not on.gate.doors and not on.gate.exchanges.live)
            assert not on.gate.pump.open
            await eventually(lambda: all(host.pool.is_empty for host in on.gate.upstreams.hosts.values()))
            on.stand_in.go_on.set()

    asyncio.run(play())


def test_llm_gateways_76_heartbeats_stand_behind_no_limit():
    bench = Bench(TARGET.format(port=9) + 'limits = ["1 concurrent"]\n[agents]\nlimits = ["1 concurrent"]\n')
    warm(bench.gate)
    for number, (door, wire) in enumerate(callers(bench, 100)):
        heartbeat = request(f"/swarmgate/v1/alive?agent=a{number % 50}", b"", "GET")
        door.data_received(heartbeat * 3 + ask(f"a{number % 50}", "x-swarmgate-wait: 0s"))
        while bench.dialler.dials:
            bench.dialler.succeed()
        *alive, last = [one.split(b" ", 2)[1] for one in wire.written] + [b"429"] * (number == 0)
        assert alive == [b"200"] * 3
        assert last == b"429"  # the first call runs, all others are sent away
    assert len(bench.gate.pump.open) == 1


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_llm_gateways_61_nor_do_they_where_the_sdk_reads_for_less_than_a_repeat_takes(kind):
    """A client that reads for 0.9 s would have left before the second send, and would ask anew: twice more, each anew."""

    async def fails(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "it broke", "type": "server_error"}}, "500 Oops"))

    async def play():
        async with stage(fails) as on, gpt(on.port, 2) as ours, claude(on.port, 2) as theirs:
            with pytest.raises((openai.InternalServerError, anthropic.InternalServerError)):
                await (
                    ours.with_options(timeout=0.9).chat.completions.create(**ASK)
                    if kind == "chat"
                    else theirs.with_options(timeout=0.9).messages.create(**ASK)
                )
            assert len(on.stand_in.hits) == 1
            assert on.ends == ["failed"]

    asyncio.run(play())
