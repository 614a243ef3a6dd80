"""Everything else below /v1/: passed on unread through the same meter, both ways at the pace of the slower side."""

import asyncio
import json

import openai
import pytest
from sdks import gpt
from stage import KEY, LAST, STREAM_HEAD, TARGET, UNARY, framed, stage, unary, warm, whole
from test_front import TEXT, answered, request
from wires import Bench, Wire

from eventually import eventually
from swarmgate.gate.service import Door

LIMITED = TARGET + 'limits = ["2 per 60s"]\n'


def begun(raw, text=TEXT):
    """A request that was passed on, and the target's end of it."""
    bench = Bench(text)
    warm(bench.gate)
    bench.client.data_received(raw)
    bench.dialler.succeed()
    return bench, *bench.dialler.opened[0]


def test_llm_gateways_43_27_no_route_bypasses_the_meter():
    async def play():
        async with stage(unary, LIMITED) as on, gpt(on.port) as client:
            await client.files.list()
            await client.audio.transcriptions.create(file=("a.wav", b"\0" * 100_000), model="whisper-1")
            with pytest.raises(openai.RateLimitError):
                await client.images.generate(prompt="x", extra_headers={"x-swarmgate-wait": "0s"})
            paths = [hit.path for hit in on.stand_in.hits]
            assert paths == ["/v1/files", "/v1/audio/transcriptions"]
            assert {hit.headers["authorization"] for hit in on.stand_in.hits} == {f"Bearer {KEY}"}
            assert len(on.stand_in.hits[1].body) > 100_000
            assert on.ends == ["answered", "answered", "deferred"]

    asyncio.run(play())


def test_here_too_a_call_waits_for_half_of_what_its_sdk_reads_for():
    """It waited for 20 s whatever the SDK said; one that reads for less left its place, and asked anew for the last."""

    async def play():
        text = TARGET + 'limits = ["1 per 60s"]\n'
        async with stage(unary, text) as on, gpt(on.port, 2).with_options(timeout=0.9) as client:
            await client.files.list()
            with pytest.raises(openai.RateLimitError):
                await client.files.list()
            assert len(on.stand_in.hits) == 1
            assert on.ends == ["answered", "deferred"]

    asyncio.run(play())


BOTH = """
[targets.claude]
base_url = "http://127.0.0.1:7/v1"
provider = "anthropic"
keys = { one = "env:KEY" }
[targets.gpt]
base_url = "http://127.0.0.1:8/v1"
provider = "openai"
keys = { one = "env:KEY" }
[routes]
"claude-*" = "claude/*"
"*" = "gpt/*"
"""


@pytest.mark.parametrize(
    ("lines", "target"), [((), "gpt"), (("anthropic-version: 2023-06-01",), "claude")], ids=["openai", "anthropic"]
)
def test_each_sdk_finds_its_own_provider_although_one_of_them_speaks_both_forms(lines, target):
    bench, _, _ = begun(request("/v1/files", b"x", "POST", *lines), BOTH)
    (call,) = bench.gate.pump.open
    assert call.rungs[0].target == target


def test_methods_queries_and_headers_go_along():
    raw = request("/v1/batches/b1?after=x&api_key=sgk_1", b"", "DELETE", "OpenAI-Beta: y", "x-swarmgate-agent: a")
    _, _, wire = begun(raw)
    head = wire.written[0].decode()
    assert head.startswith("DELETE /v1/batches/b1?after=x HTTP/1.1\r\n")
    assert "openai-beta: y\r\n" in head
    assert "sgk_1" not in head
    assert "x-swarmgate-agent" not in head


def test_hi_17_a_compressed_body_that_nobody_reads_goes_as_it_came():
    _, _, wire = begun(request("/v1/files", b"\x1f\x8b\x08bomb", "POST", "content-encoding: gzip"))
    assert b"content-encoding: gzip\r\n" in wire.written[0]
    assert b"".join(wire.written).endswith(b"\x1f\x8b\x08bomb")


@pytest.mark.parametrize("path", ["/v1/../admin", "/v1/a/%2e%2e/%2e%2e/admin", "/v1/a/..%2fadmin", "/v1/..;/x"])
def test_hi_11_a_path_that_leaves_v1_is_not_sent(path):
    status, error = answered(request(path, b"", "GET"))
    assert (status, error["code"]) == (400, "caller_bad_request")


def test_a_long_body_streams_at_the_pace_of_the_target():
    size = 1_000_000
    bench, end, wire = begun(_upload(size))
    assert wire.written[0].startswith(b"POST /v1/files HTTP/1.1\r\n")
    assert b"content-length: 1000000\r\n" in wire.written[0]
    sent = sum(map(len, wire.written))
    bench.client.data_received(b"x" * 10_000)
    assert sum(map(len, wire.written)) == sent + 10_000
    end.pause_writing()
    assert bench.wire.paused
    end.resume_writing()
    assert not bench.wire.paused
    bench.client.data_received(b"x" * (size - 110_000))
    end.data_received(whole({"id": "file-1"}))
    assert bench.ends == ["answered"]
    assert not wire.closing


def _upload(size):
    head = (
        f"POST /v1/files HTTP/1.1\r\nhost: g\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: {size}"
    )
    return head.encode() + b"\r\n\r\n" + b"x" * 100_000


def test_a_chunked_body_goes_on_in_chunks():
    head = b"POST /v1/audio/translations HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n"
    bench, end, wire = begun(head + b"13880\r\n" + b"y" * 80_000 + b"\r\n")
    assert b"transfer-encoding: chunked\r\n" in wire.written[0]
    bench.client.data_received(b"3\r\nend\r\n0\r\n\r\n")
    assert b"".join(wire.written).endswith(b"3\r\nend\r\n0\r\n\r\n")
    end.data_received(whole({}))
    assert bench.ends == ["answered"]


def test_up_15_an_early_answer_is_relayed_and_the_upload_stops():
    bench, end, wire = begun(_upload(1_000_000))
    end.data_received(whole({"error": {"message": "too large"}}, "413 Too Large"))
    sent = len(wire.written)
    bench.client.data_received(b"x" * 50_000)
    assert len(wire.written) == sent
    assert b"HTTP/1.1 413 " in b"".join(bench.wire.written)
    assert wire.closing
    assert bench.ends == ["failed"]


def test_hi_08_never_100_then_deny():
    ask = request("/v1/files", b"", "POST", "expect: 100-continue").replace(b"content-length: 0", b"content-length: 9")
    denied = Bench(TEXT.replace("[routes]", 'limits = ["1 per 60s"]\n[routes]'))  # a new gate's budgets are used up
    denied.client.data_received(ask.replace(b"expect", b"x-swarmgate-wait: 0s\r\nexpect"))
    denied.dialler.succeed()
    assert b" 429 " in denied.wire.written[0].split(b"\r\n")[0]
    bench, _, wire = begun(ask)
    assert bench.wire.written == [b"HTTP/1.1 100 Continue\r\n\r\n"]
    bench.client.data_received(b"123456789")
    assert b"".join(wire.written).endswith(b"123456789")


def test_hi_08_who_waits_for_100_keeps_its_place_in_line_for_longer_than_a_body_may_take():
    one_place = TEXT.replace("[routes]", 'limits = ["1 concurrent"]\n[routes]')
    bench, end, _ = begun(request("/v1/files", b"", "GET"), one_place)
    caller, wire = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100), Wire()
    caller.connection_made(wire)
    ask = request(
        "/v1/files", b"", "POST", "expect: 100-continue", "x-swarmgate-wait: 200s", "x-swarmgate-timeout: 300s"
    )
    caller.data_received(ask.replace(b"content-length: 0", b"content-length: 9"))
    bench.dialler.succeed()
    end.data_received(STREAM_HEAD)
    for _ in range(100):
        end.data_received(framed(b"x"))
        bench.pass_time(1_000)
    assert wire.written == []
    end.data_received(LAST)
    assert wire.written == [b"HTTP/1.1 100 Continue\r\n\r\n"]
    caller.data_received(b"123456789")
    bench.dialler.opened[0][0].data_received(whole({}))
    assert wire.written[1].startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_upload_that_is_declined_is_read_to_its_end():
    bench = Bench(TEXT)
    bench.client.data_received(_upload(1_000_000).replace(b"host: g", b"host: g\r\nx-swarmgate-effect: maybe"))
    assert b" 400 " in bench.wire.written[0].split(b"\r\n")[0]
    assert not bench.wire.paused


def test_hi_14_upgrades_are_refused():
    for path in ("/v1/realtime", "/v1/chat/completions"):
        status, error = answered(request(path, b"", "GET", "connection: upgrade", "upgrade: websocket"))
        assert (status, error["code"]) == (501, "caller_upgrade")


def test_llm_gateways_50_who_leaves_while_it_uploads_is_cancelled():
    async def reads(stand_in, _hit, _writer):
        await stand_in.closed.wait()

    async def play():
        async with stage(reads) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.port)
            writer.write(b"POST /v1/files HTTP/1.1\r\nhost: g\r\ncontent-length: 200000\r\n\r\n" + b"x" * 100_000)
            await eventually(lambda: on.stand_in.connections == 1)
            writer.close()
            await asyncio.wait_for(on.stand_in.closed.wait(), 5)
            await eventually(lambda: on.ends == ["cancelled"])
            reader.feed_eof()

    asyncio.run(play())


def test_hi_10_who_leaves_while_its_upload_waits_in_line_is_out_of_it():
    async def play():
        one_place = TARGET + 'limits = ["1 concurrent"]\n'
        async with stage(lambda stand_in, _hit, _writer: stand_in.go_on.wait(), one_place) as on:
            _, first = await asyncio.open_connection("127.0.0.1", on.port)
            first.write(request("/v1/files", b"x"))
            await eventually(lambda: len(on.stand_in.hits) == 1)
            _, second = await asyncio.open_connection("127.0.0.1", on.port)
            second.write(_upload(200_000) + b"x" * 100_000)
            await eventually(lambda: len(on.gate.pump.open) == 2)
            second.close()
            try:
                await eventually(lambda: on.ends == ["cancelled"])
            finally:
                on.stand_in.go_on.set()
                first.close()
        assert len(on.stand_in.hits) == 1

    asyncio.run(play())


def test_sc_02_an_error_about_our_key_is_not_shown_here_either():
    bench, end, _ = begun(request("/v1/files", b"", "GET"))
    end.data_received(whole({"error": {"message": "Incorrect API key: sk-1", "code": "invalid_api_key"}}, "401 No"))
    said = b"".join(bench.wire.written)
    assert b"sk-1" not in said
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "target_key_refused"


def test_who_speaks_like_anthropic_goes_to_a_target_that_does():
    text = TEXT.replace("[routes]", 'provider = "openai"\n[targets.claude]\nbase_url = "http://127.0.0.1:8/v1"\n')
    text = text.replace(
        '127.0.0.1:8/v1"\n',
        '127.0.0.1:8/v1"\nkeys = { it = "env:KEY" }\nprovider = "anthropic"\n[routes]\nc = "claude/c"\n',
    )
    bench, end, _ = begun(request("/v1/files", b"", "GET", "anthropic-version: 2023-06-01"), text)
    assert end._home._origin.port == 8
    end.data_received(whole(UNARY))
    assert b"x-swarmgate-key-id: it" in bench.wire.written[0]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/v1/chat/%63ompletions",
        "/v1/chat/%2563ompletions",
        "/v1/chat%2fcompletions",
        "/v1/./chat/completions",
        "/v1/x/../chat/completions",
        "/v1/chat/completions;a",
        "/v1/Chat/Completions",
        "/v1/messages/?beta=true",
        "/v1/embeddings%2f",
    ],
)
def test_rb_22_another_spelling_of_a_metered_path_goes_nowhere(path):
    status, error = answered(request(path, b'{"model": "m"}'))
    assert (status, error["code"]) == (400, "caller_bad_request")
    assert "another spelling" in error["message"]


def test_an_agent_cannot_take_a_key_away_by_asking_for_what_it_may_not():
    async def script(_, hit, writer):
        refused = hit.path.startswith("/v1/organization")
        writer.write(whole({"error": {"code": "invalid_api_key"}}, "401 No") if refused else whole(UNARY))

    async def play():
        async with stage(script) as on, gpt(on.port) as client:
            for _ in range(3):
                with pytest.raises(openai.APIStatusError, match="does not accept"):
                    await client.get("/organization/users", cast_to=object)
            assert (await client.models.with_raw_response.list()).status_code == 200
            answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
            assert answer.choices[0].message.content == "four"
            assert len(on.stand_in.hits) == 4

    asyncio.run(play())


MONEY = """
[agents]
limits = ["1 USD per 1d"]
[prices."up/v1/images/*"]
input = 0
output = 0
per_request = 0.04
[prices."up/v1/files"]
input = 0
output = 0
[prices."up/*"]
input = 1
output = 2
"""


@pytest.mark.parametrize(
    ("path", "micro"), [("/v1/images/generations", 40_000), ("/v1/files?x=1", 1), ("/v1/batches", None)]
)
def test_a_cap_in_money_holds_on_unread_paths_at_the_stated_price(path, micro):
    bench = Bench(TARGET.format(port=9) + MONEY)
    warm(bench.gate)
    bench.client.data_received(request(path, b"{}", "POST", "x-swarmgate-agent: a"))
    if micro is None:
        (said,) = bench.wire.written
        assert b"403 Forbidden" in said
        assert b"policy_price_unknown" in said
        assert b"up/v1/batches" in said
        assert bench.dialler.dials == []
        assert bench.reserved == 0
        return
    bench.dialler.succeed()
    cell = bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert cell.pending == micro
    bench.dialler.opened[0][0].data_received(whole({"ok": True}))
    assert bench.ends == ["answered"]
    assert (cell.level, cell.pending) == (micro, 0)


def test_without_a_cap_in_money_nothing_needs_a_price():
    bench, end, _ = begun(request("/v1/batches", b"{}", "POST", "x-swarmgate-agent: a"))
    end.data_received(whole({"ok": True}))
    assert bench.ends == ["answered"]


def test_se_05_a_caller_that_was_full_before_the_answer_pauses_it_from_its_beginning():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/v1/files", b"", "GET"))
    bench.client.pause_writing()
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    end.data_received(STREAM_HEAD + framed(b"a"))
    assert wire.paused
