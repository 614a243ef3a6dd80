"""The official SDK against a running gate, and an independent count of what reached the target."""

import asyncio
from hashlib import sha256

import openai
import pytest
from stage import (
    DONE,
    FINISH,
    KEY,
    LAST,
    ROLE,
    STREAM_HEAD,
    TARGET,
    UNARY,
    USAGE,
    framed,
    stage,
    token,
    unary,
    warm,
    whole,
)
from test_front import request

from eventually import eventually
from records import fields_in

STREAMS, EVENTS = 20, 60
ASK = {"model": "any", "messages": [{"role": "user", "content": "2 + 2?"}]}


def sdk(port, **options):
    return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="agent", max_retries=0, **options)


async def texts(stream):
    return [
        chunk.choices[0].delta.content async for chunk in stream if chunk.choices and chunk.choices[0].delta.content
    ]


def test_unary_and_streamed_calls():
    async def play():
        async with stage() as on, sdk(on.port) as client:
            answer = await client.chat.completions.create(**ASK)
            assert answer.choices[0].message.content == "four"
            assert await texts(await client.chat.completions.create(**ASK, stream=True)) == ["fo", "ur"]
            assert [hit.path for hit in on.stand_in.hits] == ["/v1/chat/completions"] * 2
            assert on.stand_in.connections == 1
            assert on.ends == ["answered", "answered"]

    asyncio.run(play())


def test_the_key_goes_to_its_target_and_nowhere_else(capfd):
    async def play():
        async with stage() as on, sdk(on.port) as client:
            raw = await client.chat.completions.with_raw_response.create(
                **ASK, extra_headers={"x-swarmgate-agent": "a1", "cookie": "c=1"}
            )
            hit = on.stand_in.hits[0]
            assert hit.headers["authorization"] == f"Bearer {KEY}"
            ours = [name for name in hit.headers if name.startswith("x-swarmgate") or name == "cookie"]
            assert ours == ["x-swarmgate-hop"]
            assert KEY not in str(dict(raw.headers)) + raw.text
            assert raw.headers["x-swarmgate-key-id"] == "first"
            assert KEY not in repr(fields_in(on.gate)) + repr(on.gate.journal.entries)
            for path in ("/nowhere", f"/{KEY[:3]}"):
                with pytest.raises(openai.NotFoundError) as caught:
                    await client.post(f"http://127.0.0.1:{on.port}{path}", cast_to=object, body={})
                assert KEY not in str(caught.value)

    asyncio.run(play())
    shown = capfd.readouterr()
    assert KEY not in shown.out + shown.err


NOW = {"x-swarmgate-wait": "0s", "x-swarmgate-priority": "P0"}
FOUR_A_MINUTE = TARGET + 'limits = ["4 per 60s"]\n'
SOON = TARGET + 'limits = ["12 per 1s"]\n'


def test_a_used_up_budget_defers_with_what_the_sdk_reads():
    async def play():
        async with stage(text=FOUR_A_MINUTE) as on, sdk(on.port) as client:
            for _ in range(4):
                await client.chat.completions.create(**ASK, extra_headers=NOW)
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(**ASK, extra_headers=NOW)
            error = caught.value
            deferral = error.body["deferral"]
            headers = error.response.headers
            assert headers["x-should-retry"] == "false"
            assert int(headers["retry-after"]) * 1_000 >= deferral["retry_after_ms"]
            (blocking,) = deferral["blocking"]
            told = {"budget": "up: requests per 60s", "policy": "4 requests per 60s", "limit": 4, "window_ms": 60_000}
            assert told.items() <= blocking.items()
            assert headers["ratelimit-policy"] == '"up: requests per 60s";q=4;w=60'
            assert headers["ratelimit"].startswith('"up: requests per 60s";r=0;t=')
            assert headers["proxy-status"] == 'swarmgate; error=http_request_denied; details="policy_rate"'
            assert deferral["reason"] == error.code == "policy_rate"
            assert on.ends == ["answered"] * 4 + ["deferred"]
            assert len(on.stand_in.hits) == 4

    asyncio.run(play())


def test_a_waiting_call_is_served_when_the_budget_refills():
    async def play():
        async with stage(text=SOON) as on, sdk(on.port) as client:
            answers = await asyncio.gather(*[client.chat.completions.create(**ASK) for _ in range(14)])
            assert len(answers) == len(on.stand_in.hits) == 14
            assert on.ends == ["answered"] * 14

    asyncio.run(play())


def test_llm_gateways_34_twenty_at_once_never_exceed_the_limit_at_the_target():
    async def play():
        async with stage(text=SOON) as on, sdk(on.port) as client:
            await asyncio.gather(*[client.chat.completions.create(**ASK) for _ in range(20)])
            times = [hit.at_s for hit in on.stand_in.hits]
            assert len(times) == 20
            assert all(later - first > 1.0 for first, later in zip(times, times[12:], strict=False))

    asyncio.run(play())


def test_llm_gateways_53_the_client_leaves_and_the_target_is_left_at_once():
    async def endless(stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(token("a")))
        await stand_in.closed.wait()

    async def play():
        async with stage(endless) as on, sdk(on.port) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            async for _ in stream:
                break
            await stream.close()
            await asyncio.wait_for(on.stand_in.closed.wait(), 5)
            assert on.ends == ["cancelled"]

    asyncio.run(play())


def test_llm_gateways_67_a_stream_that_is_cut_says_so_and_never_done():
    async def cut(_stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(ROLE) + framed(token("fo")))
        await writer.drain()
        writer.close()

    async def play():
        async with stage(cut) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.port)
            body = b'{"model":"m","stream":true,"messages":[]}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: %d\r\n\r\n" % len(body)
            writer.write(head + body)
            said = await asyncio.wait_for(reader.read(), 5)
            writer.close()
            assert b'"fo"' in said
            assert b'data: {"error":{' in said
            assert b"[DONE]" not in said
            assert not said.endswith(LAST)
            async with sdk(on.port) as client:
                with pytest.raises(openai.APIError, match="ended before it was whole"):
                    await texts(await client.chat.completions.create(**ASK, stream=True))
            assert on.ends == ["failed", "failed"]

    asyncio.run(play())


@pytest.mark.parametrize("cut_at", [1, 12, 40, 60, len(USAGE) - 3])
def test_usage_split_over_two_reads_is_counted(cut_at):
    async def split(stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(token("four")))
        await writer.drain()
        writer.write(framed(FINISH + USAGE[:cut_at]))
        await writer.drain()
        await stand_in.go_on.wait()
        writer.write(framed(USAGE[cut_at:]) + framed(b"data: [DONE]\n\n") + LAST)

    async def play():
        async with stage(split) as on, sdk(on.port) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            async for _ in stream:
                on.stand_in.go_on.set()
            notes = [entry.noted for entry in on.gate.journal.entries if hasattr(entry.noted, "used")]
            assert [note.used for note in notes] == [3 + 9 - prompt_of(ASK)]

    asyncio.run(play())


def prompt_of(ask):
    return len(str(ask["messages"]).replace(" ", "")) // 4 + 1


def test_an_upstream_error_is_relayed_with_its_own_words():
    async def refuse(_stand_in, _hit, writer):
        error = {"error": {"message": "no such thing", "type": "invalid_request_error", "code": "x1"}}
        writer.write(whole(error, "400 Bad Request", "x-ratelimit-remaining-requests: 3\r\n"))

    async def play():
        async with stage(refuse) as on, sdk(on.port) as client:
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(**ASK)
            assert caught.value.code == "x1"
            assert not [name for name in caught.value.response.headers if "x-ratelimit" in name]
            assert caught.value.response.headers["proxy-status"] == "swarmgate; received-status=400"
            assert on.ends == ["failed"]

    asyncio.run(play())


def test_a_refused_key_leaves_and_its_error_is_not_shown():
    async def first_dead(stand_in, hit, writer):
        if hit.headers["authorization"].endswith("bad"):
            writer.write(whole({"error": {"message": "Incorrect API key: bad", "code": "invalid_api_key"}}, "401 No"))
        else:
            writer.write(whole(UNARY))

    text = TARGET.replace('first = "env:KEY"', 'bad = "file:{folder}/bad", good = "env:KEY"')

    async def play(folder):
        async with stage(first_dead, text.replace("{folder}", folder)) as on, sdk(on.port) as client:
            for _ in range(4):
                answer = await client.chat.completions.with_raw_response.create(**ASK)
                assert answer.headers["x-swarmgate-key-id"] == "good"
            assert len(on.stand_in.hits) == 5

    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bad").write_text("sk-bad\n")
        asyncio.run(play(folder))


def test_a_gate_that_stops_closes_no_connection_under_a_request():
    async def held(stand_in, _hit, writer):
        await stand_in.go_on.wait()
        writer.write(whole(UNARY))

    async def play():
        async with stage(held) as on:
            ask = b"POST /v1/embeddings HTTP/1.1\r\nhost: g\r\ncontent-length: 13\r\n\r\n" + b'{"model":"m"}'
            idle, busy = [await asyncio.open_connection("127.0.0.1", on.port) for _ in range(2)]
            busy[1].write(ask)
            await eventually(lambda: on.stand_in.hits and len(on.gate.doors) == 2)
            stopped = asyncio.ensure_future(on.gate.stop(drain_s=60))
            await asyncio.sleep(0)
            idle[1].write(ask)
            refused = await idle[0].read()  # to its end: it was closed
            on.stand_in.go_on.set()
            answered = await busy[0].read()
            assert await stopped == 0
            for said, status in ((refused, b"503"), (answered, b"200")):
                assert said.startswith(b"HTTP/1.1 " + status)
                assert b"\r\nconnection: close\r\n" in said
            idle[1].close()
            busy[1].close()

    asyncio.run(play())


def test_se_09_a_gate_that_stops_tells_whoever_is_still_there():
    async def endless(stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(token("a")))
        await stand_in.closed.wait()

    async def play():
        text = TARGET + 'limits = ["1 concurrent"]\n'
        async with stage(endless, text) as on, sdk(on.port) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            waiting = asyncio.ensure_future(client.chat.completions.create(**ASK))
            await eventually(lambda: len(on.gate.pump.open) == 2)
            assert await on.gate.stop(drain_s=0) == 2
            with pytest.raises(openai.InternalServerError, match="stopping") as caught:
                await waiting
            assert caught.value.status_code == 503
            with pytest.raises(openai.APIError, match="stopping"):
                await texts(stream)
            assert on.ends == ["failed", "failed"]
            warm(on.gate)  # leases lapse by themselves

    asyncio.run(play())


@pytest.mark.parametrize("asks", [True, False], ids=["usage asked for", "usage added"])
def test_se_01_characters_that_are_cut_at_every_byte_are_the_same_bytes(asks):
    """No byte is decoded on its way, and none becomes U+FFFD."""
    text = "h\u00e9 \u4e2d\u6587 \U0001f9ec\U0001f469\u200d\U0001f52c \ufeff"
    payload = b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % one.encode() for one in (text, text[::-1])
    )

    async def drips(_stand_in, _hit, writer):
        writer.write(STREAM_HEAD)
        for at in range(len(payload)):
            writer.write(framed(payload[at : at + 1]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(framed(FINISH + USAGE + DONE) + LAST)

    async def play():
        async with stage(drips) as on:
            body = b'{"model":"m","stream":true%b}' % (b',"stream_options":{"include_usage":true}' if asks else b"")
            reader, writer = await asyncio.open_connection("127.0.0.1", on.port)
            writer.write(request("/v1/chat/completions", body, "POST", "connection: close"))
            chunks = (await reader.read()).partition(b"\r\n\r\n")[2]
            writer.close()
            said = b""
            while chunks:
                size, _, rest = chunks.partition(b"\r\n")
                said, chunks = said + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
            assert said == payload + FINISH + (USAGE if asks else b"") + DONE

    asyncio.run(play())


def chained(before, number):
    """The text of one event: its number, and a hash of all that came before it."""
    return f"{number}:{sha256(f'{before}{number}'.encode()).hexdigest()[:12]}"


def test_se_07_of_many_streams_no_event_is_lost_doubled_or_out_of_order():
    async def counts(_stand_in, hit, writer):
        writer.write(STREAM_HEAD)
        said = hit.said["user"]
        for number in range(EVENTS):
            said = chained(said, number)
            writer.write(framed(token(said)))
            if number % 7 == 0:
                await writer.drain()
                await asyncio.sleep(0)
        writer.write(framed(FINISH + DONE) + LAST)

    async def heard(client, name):
        stream = await client.chat.completions.create(**ASK, stream=True, user=name)
        said = name
        for number, text in enumerate(got := await texts(stream)):
            said = chained(said, number)
            assert text == said
        return len(got)

    async def play():
        async with stage(counts) as on, sdk(on.port) as client:
            assert await asyncio.gather(*[heard(client, f"stream {n}") for n in range(STREAMS)]) == [EVENTS] * STREAMS
            assert on.ends == ["answered"] * STREAMS

    asyncio.run(play())


def test_a_model_target_is_dialled_where_the_operator_pinned_its_host():
    text = TARGET.replace("//127.0.0.1:{port}/", "//model.test:81/") + '[resolve]\n"model.test" = "127.0.0.1:{port}"\n'

    async def play():
        async with stage(unary, text) as on, sdk(on.port) as client:
            await client.chat.completions.create(**ASK)
            assert [hit.headers["host"] for hit in on.stand_in.hits] == ["model.test:81"]

    asyncio.run(play())
