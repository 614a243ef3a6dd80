"""What users of other gateways were hurt by: each test has the number of the complaint (llm_gateways 3.1 to 3.6)."""

import asyncio
import json
import re
from pathlib import Path

import anthropic
import openai
import pytest
from sdks import ASK, TWO, claude, gpt
from stage import DONE, FINISH, STREAM_HEAD, TARGET, UNARY, either, framed, stage, token, warm, whole
from test_front import TEXT, request
from test_relay import started
from wires import Bench, Wire

from eventually import eventually
from swarmgate.gate.model_route import PATHS
from swarmgate.gate.service import Door

ONE_SLOT = TARGET + 'limits = ["1 concurrent"]\n'
TESTS = Path(__file__).parents[1]
PLACES = """
[targets.{name}]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
"""
LADDER = (
    PLACES.format(name="dear", port=7)
    + PLACES.format(name="cheap", port=8)
    + """
[routes]
fast = ["dear/large", "cheap/small"]
"""
)
PRICES = """
[prices."dear/large"]
input = 100
output = 900
[prices."cheap/small"]
input = 1
output = 2
"""
LIMIT = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}


def test_llm_gateways_5_more_calls_than_slots_wait_instead_of_failing():
    running = []

    async def slow(stand_in, _hit, writer):
        running.append(len(running))
        await stand_in.go_on.wait()
        writer.write(whole(UNARY))

    async def play():
        async with stage(slow, TARGET + 'limits = ["5 concurrent"]\n') as on, gpt(on.port) as client:
            calls = [asyncio.ensure_future(client.chat.completions.create(**ASK)) for _ in range(20)]
            await eventually(lambda: len(on.gate.pump.room) == 15 and len(running) == 5)
            on.stand_in.go_on.set()
            assert len(await asyncio.gather(*calls)) == len(on.stand_in.hits) == 20

    asyncio.run(play())


def test_llm_gateways_3_callers_who_give_up_leave_the_line():
    async def play():
        async with stage(_never, ONE_SLOT) as on, gpt(on.port) as client:
            tasks = [asyncio.ensure_future(client.chat.completions.create(**ASK)) for _ in range(4)]
            await eventually(lambda: len(on.gate.pump.room) == 3)
            for task in tasks[1:]:
                task.cancel()
            await eventually(lambda: len(on.gate.pump.room) == 0)
            assert on.gate.store.book.line("up: 1 concurrent").order == []
            tasks[0].cancel()
            await eventually(lambda: on.ends == ["cancelled"] * 4)
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())


async def _never(stand_in, _hit, _writer):
    await stand_in.closed.wait()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["leaves", "error", "timeout"])
def test_llm_gateways_40_47_48_50_se_04_no_way_out_keeps_a_slot(how, stream):
    bench = Bench(TEXT.replace("[routes]", 'limits = ["1 concurrent"]\n[routes]'))
    warm(bench.gate)
    lines = ("x-swarmgate-timeout: 5s",) if how == "timeout" else ()
    body = b'{"model":"fast","stream":true}' if stream else b'{"model":"fast"}'
    bench.client.data_received(request("/v1/chat/completions", body, "POST", *lines))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    assert bench.reserved > 0
    if how == "leaves":
        bench.client.connection_lost(None)
    elif how == "error":
        end.data_received(whole({"error": {"message": "no"}}, "400 Bad"))
    else:
        bench.pass_time(5_500)
    assert len(bench.ends) == 1
    assert wire.closing or how == "error"
    assert bench.reserved == 0


def test_llm_gateways_6_all_keys_resting_is_a_wait_until_the_first_returns():
    async def script(stand_in, hit, writer):
        if len(stand_in.hits) == 1:
            writer.write(whole(LIMIT, "429 Too Many Requests", "retry-after: 1\r\n"))
        else:
            await either(stand_in, hit, writer)

    async def play():
        async with stage(script) as on, gpt(on.port) as client:
            await client.chat.completions.create(**ASK)
            first, second = on.stand_in.hits
            assert second.at_s - first.at_s >= 1

    asyncio.run(play())


def test_llm_gateways_11_a_deferral_for_resting_keys_says_when_the_first_returns():
    bench, end = begun(b'{"model":"m"}', "x-swarmgate-wait: 0s")
    end.data_received(whole(LIMIT, "429 Too Many Requests", "retry-after: 100\r\n"))
    for _ in range(2):  # to whom it happened, and who comes later
        head, _, body = bench.wire.written[-1].partition(b"\r\n\r\n")
        told = json.loads(body)["error"]["deferral"]
        assert 100_000 <= told["not_before_ms"] <= 120_000
        retry_after_s = int(re.search(rb"\r\nretry-after: (\d+)", head)[1])
        assert told["not_before_ms"] <= retry_after_s * 1_000 <= told["not_before_ms"] * 1.2 + 1_000
        assert b"x-should-retry: false" in head  # no SDK is to sleep for minutes
        bench.client.data_received(request("/v1/responses", b'{"model":"m"}', "POST", "x-swarmgate-wait: 0s"))
    assert bench.ends == ["deferred"] * 3
    assert requests(bench) == 1


@pytest.mark.parametrize("path", PATHS)
def test_llm_gateways_27_every_route_counts(path):
    bench = Bench(LIMITED_TOKENS)
    warm(bench.gate)
    book = bench.gate.store.book.cells
    before = tokens(bench)
    body = b'{"model":"m","max_tokens":9,"input":"%b","messages":"%b"}' % (b"x" * 4_000, b"x" * 4_000)
    bench.client.data_received(request(path.decode(), body))
    bench.dialler.succeed()
    assert tokens(bench) - before >= 2_000
    bench.dialler.opened[0][0].data_received(whole(UNARY | {"usage": {"prompt_tokens": 5_000, "total_tokens": 5_000}}))
    assert tokens(bench) - before == 5_000  # as the target counted
    assert book["up/first: requests per 1s"].level > 0
    assert bench.reserved == 0


def test_llm_gateways_37_many_at_once_do_not_pass_a_cap_in_money_together():
    text = LADDER.replace('fast = ["dear/large", "cheap/small"]', 'fast = "dear/large"')
    text += '[agents]\nlimits = ["1 USD per 1d"]\n' + PRICES
    bench = Bench(text)
    warm(bench.gate)
    calls = 50
    body = b'{"model":"fast","max_tokens":111}'  # 0.1 USD each
    callers = []
    for _ in range(calls):
        callers.append((Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100), Wire()))
        callers[-1][0].connection_made(callers[-1][1])
        words = ("x-swarmgate-agent: a", "x-swarmgate-wait: 0s")
        callers[-1][0].data_received(request("/v1/chat/completions", body, "POST", *words))
    while bench.dialler.dials:
        bench.dialler.succeed()
    assert requests(bench) == 10
    told = [b"".join(wire.written) for _, wire in callers]
    assert sum(one.startswith(b"HTTP/1.1 429") for one in told) == calls - 10
    for end, _ in bench.dialler.opened:
        end.data_received(whole(UNARY | {"usage": {"prompt_tokens": 1, "completion_tokens": 111, "total_tokens": 112}}))
    cell = bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert (cell.level, cell.pending) == (1_000_000, 0)


def test_llm_gateways_82_another_key_is_tried_at_once():
    async def script(stand_in, hit, writer):
        if len(stand_in.hits) == 1:
            writer.write(whole(LIMIT, "429 Too Many Requests", "retry-after: 60\r\n"))
        else:
            await either(stand_in, hit, writer)

    async def play():
        text = TARGET.replace('first = "env:KEY"', 'first = "env:KEY", second = "env:KEY"')
        async with stage(script, text) as on, gpt(on.port) as client:
            await client.chat.completions.create(**ASK)
            assert on.stand_in.hits[1].at_s - on.stand_in.hits[0].at_s < 30  # the first key is out for 60 s

    asyncio.run(play())


def test_llm_gateways_42_whose_limit_it_was_is_told():
    async def refuses(_stand_in, _hit, writer):
        writer.write(whole(LIMIT, "429 Too Many Requests", "retry-after: 60\r\n"))

    async def play():
        async with stage(refuses) as on, gpt(on.port) as client:
            with pytest.raises(openai.RateLimitError) as theirs:
                await client.chat.completions.create(**ASK, extra_headers={"x-swarmgate-wait": "0s"})
            assert theirs.value.code == "target_rate"

    asyncio.run(play())


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_llm_gateways_61_ov_02_retries_of_sdk_and_gate_do_not_multiply(kind):
    async def fails(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "it broke", "type": "server_error"}}, "500 Oops"))

    async def play():
        async with stage(fails, TWO) as on, gpt(on.port, 2) as ours, claude(on.port, 2) as theirs:
            with pytest.raises((openai.InternalServerError, anthropic.InternalServerError)):
                await (ours.chat.completions.create(**ASK) if kind == "chat" else theirs.messages.create(**ASK))
            assert len(on.stand_in.hits) == 4
            assert on.ends == ["dead_lettered"]

    asyncio.run(play())


def test_llm_gateways_41_nobody_must_say_how_much_output():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request(body=b'{"model":"fast"}'))
    bench.dialler.succeed()
    bench.dialler.opened[0][0].data_received(whole(UNARY))
    assert bench.ends == ["answered"]


@pytest.mark.parametrize("comments", [True, False], ids=["56 comments", "57 silence"])
def test_llm_gateways_56_57_se_08_a_dead_stream_is_noticed(comments):
    bench, end, wire = started(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    for _ in range(70):
        bench.pass_time(1_000)
        if comments and not wire.closing:
            end.data_received(framed(b": ping\n\n"))
    assert wire.closing
    assert bench.ends == ["failed"]
    said = b"".join(bench.wire.written)
    assert b'"code":"target_slow"' in said  # the caller's own time has another name: see UP-06
    assert b"[DONE]" not in said


def test_llm_gateways_66_the_time_to_the_first_token_is_not_the_time_of_the_whole():
    bench, end, wire = started(stream=True)
    bench.pass_time(7_000)
    for number in range(60):
        end.data_received((b"" if number else STREAM_HEAD) + framed(token("a")))
        bench.pass_time(1_000)
    assert not wire.closing
    end.data_received(framed(FINISH + DONE) + b"0\r\n\r\n")
    assert bench.ends == ["answered"]


def test_ov_08_work_whose_time_is_over_is_never_sent():
    bench = Bench(TEXT.replace("[routes]", 'limits = ["1 concurrent"]\n[routes]'))
    bench.client.data_received(request("/v1/responses", b'{"model":"fast"}', "POST", "x-swarmgate-timeout: 2s"))
    bench.dialler.succeed()
    for _ in range(120):
        bench.pass_time(1_000)
    assert bench.dialler.opened[0][1].written == []
    assert bench.ends in (["failed"], ["deferred"])


def test_llm_gateways_55_ov_04_a_stale_connection_costs_a_read_nothing():
    bench, end, wire = started(stream=False)
    end.data_received(whole(UNARY))
    wire.closing = True  # the target closed it exactly now
    bench.client.data_received(request(body=b'{"model":"fast"}'))
    bench.dialler.succeed()
    bench.dialler.opened[1][0].data_received(whole(UNARY))
    assert bench.ends == ["answered", "answered"]
    assert len(wire.written) == 1


def test_llm_gateways_78_a_write_that_the_target_has_read_is_not_sent_again():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/v1/batches", b'{"x":1}'))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    wire.closing = True
    end.connection_lost(None)
    for _ in range(40):
        bench.pass_time(1_000)
    assert bench.dialler.dials == []
    assert bench.ends == ["unknown_effect"]
    assert b"target_unknown_effect" in bench.wire.written[0]


LIMITED_TOKENS = TARGET.format(port=9).replace("900000000 tokens per 1s", "900000 tokens per 60s")


def tokens(bench):
    """Units in the level of the key's limit on tokens."""
    cell = bench.gate.store.book.cells["up/first: tokens per 60s"]
    return cell.level // cell.scale


def requests(bench):
    return sum(len(wire.written) for _, wire in bench.dialler.opened)


def begun(body, *lines, text=LIMITED_TOKENS):
    """A call that has left, and the target's end of it."""
    bench = Bench(text)
    warm(bench.gate)
    bench.client.data_received(request("/v1/chat/completions", body, "POST", *lines))
    bench.dialler.succeed()
    return bench, bench.dialler.opened[-1][0]


def test_llm_gateways_14_the_newest_hint_counts():
    bench, end = begun(b'{"model":"m"}', "x-swarmgate-wait: 300s", "x-swarmgate-timeout: 300s")
    waits = []
    for hint_s in (9, 107):
        end.data_received(whole(LIMIT, "429 Too Many Requests", f"retry-after: {hint_s}\r\n"))
        sent, waited = requests(bench), 0
        while requests(bench) == sent and bench.gate.pump.open:
            bench.pass_time(250)
            waited += 250
            if bench.dialler.dials:
                bench.dialler.succeed()
                end = bench.dialler.opened[-1][0]
        waits.append(waited)
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    assert 9_000 <= waits[0] <= 20_000
    assert 107_000 <= waits[1] <= 130_000


def test_llm_gateways_52_an_error_is_no_output():
    bench, end = begun(b'{"model":"m","max_tokens":900}')
    before = tokens(bench)
    end.data_received(whole({"error": {"message": "no " * 500}}, "400 Bad Request"))
    assert bench.ends == ["failed"]
    assert tokens(bench) - before == 0
    assert bench.reserved == 0


def test_llm_gateways_72_the_model_that_answered_is_what_costs():
    text = LADDER + '[agents]\nlimits = ["9 USD per 1d"]\n' + PRICES
    bench, end = begun(b'{"model":"fast","max_tokens":9}', "x-swarmgate-agent: a", text=text)
    end.data_received(whole({"error": {"type": "overloaded_error"}}, "529 Overloaded"))
    bench.dialler.succeed()
    bench.dialler.opened[-1][0].data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    cell = bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert (cell.level, cell.pending) == (9 * 1 + 3 * 2, 0)


def test_a_rung_reserves_what_it_costs_itself():
    text = LADDER.replace('"dear/large", "cheap/small"', '"cheap/small", "dear/large"')
    text += '[agents]\nlimits = ["9 USD per 1d"]\n' + PRICES
    bench, end = begun(b'{"model":"fast","max_tokens":9}', "x-swarmgate-agent: a", text=text)
    cell = bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert cell.pending == 1 * 1 + 9 * 2
    end.data_received(whole({"error": {"type": "overloaded_error"}}, "529 Overloaded"))
    bench.dialler.succeed()
    assert cell.pending == 1 * 100 + 9 * 900
    bench.dialler.opened[-1][0].data_received(whole(UNARY))
    assert (cell.level, cell.pending) == (9 * 100 + 3 * 900, 0)


def test_a_rung_without_a_price_serves_nobody_whose_money_is_capped():
    text = LADDER + '[agents]\nlimits = ["9 USD per 1d"]\n' + PRICES.partition('[prices."cheap')[0]
    bench, end = begun(b'{"model":"fast","max_tokens":9}', "x-swarmgate-agent: a", text=text)
    end.data_received(whole({"error": {"type": "overloaded_error"}}, "529 Overloaded"))
    assert len(bench.dialler.dials) == 0
    assert "cheap" not in {call.rungs[call.rung].target for call in bench.gate.pump.open}


def test_no_complaint_is_forgotten():
    """One that no test has in its name concerns no gate of today; a new one is named here or tested."""
    names = re.findall(
        r"def test_\w*?llm_gateways_((?:\d+_)+)", "".join(path.read_text() for path in TESTS.rglob("*.py"))
    )
    tested = {int(number) for name in names for number in name.strip("_").split("_")}
    assert tested == set(range(1, 86))
