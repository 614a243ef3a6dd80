"""Down a ladder on real sockets: what leads to the next rung, what is passed over, and an error that tells all of it."""

import asyncio

import anthropic
import openai
import pytest
from sdks import ASK, OVERLOADED, TWO, claude, gpt
from stage import KEY, OTHER_KEY, STREAM_HEAD, UNARY, either, event, framed, stage, token, whole

from swarmgate.core.circuit import Circuit
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.rungs import Tried
from swarmgate.core.target_ring import TargetRing
from swarmgate.core.waiting import Room
from swarmgate.gate import answers

RATE = {"error": {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}


def failing(body, status="200 OK", extra=""):
    """A first target that always answers so; the second one serves."""

    async def script(stand_in, hit, writer):
        if hit.path.startswith("/second"):
            await either(stand_in, hit, writer)
        elif isinstance(body, bytes):
            writer.write(STREAM_HEAD + framed(body) + b"0\r\n\r\n")
        else:
            writer.write(whole(body, status, extra))

    return script


FAILURES = {
    "llm_gateways #16 #17 #18: a 429 without a hint": failing(RATE, "429 Too Many Requests"),
    "a 429 whose wait is longer than 8 s": failing(RATE, "429 Too Many Requests", "retry-after: 60\r\n"),
    "llm_gateways #83: a 529": failing(OVERLOADED, "529 Overloaded"),
    "llm_gateways #80: an error as the first event": failing(event(OVERLOADED)),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "llm_gateways #25 #63: stream"])
@pytest.mark.parametrize("name", FAILURES)
def test_llm_gateways_16_17_18_25_63_80_83_the_next_rung_answers(name, stream):
    async def play():
        async with stage(FAILURES[name], TWO) as on, gpt(on.port) as client:
            raw = await client.chat.completions.with_raw_response.create(**ASK, stream=stream)
            assert raw.headers["x-swarmgate-rung"] == "1"
            assert raw.headers["x-swarmgate-key-id"] == "two"
            assert [(hit.path, hit.said["model"]) for hit in on.stand_in.hits] == [
                ("/first/chat/completions", "large"),
                ("/second/chat/completions", "small"),
            ]
            if stream:
                assert len([chunk async for chunk in raw.parse()]) == 4  # the count is kept from who did not ask for it
            assert on.ends == ["answered"]

    asyncio.run(play())


async def collect(stream, said):
    async for chunk in stream:
        said.append(chunk.choices[0].delta.content)


def test_llm_gateways_64_se_06_nothing_is_sent_again_after_content():
    async def dies(_stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(token("Hello ")))
        await writer.drain()
        writer.close()

    async def play():
        async with stage(dies, TWO) as on, gpt(on.port) as client:
            said = []
            with pytest.raises(openai.APIError, match="ended before it was whole"):
                await collect(await client.chat.completions.create(**ASK, stream=True), said)
            assert said == ["Hello "]
            assert len(on.stand_in.hits) == 1

    asyncio.run(play())


def test_llm_gateways_71_an_error_lists_every_attempt():
    async def fails(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "it broke", "type": "server_error"}}, "500 Oops"))

    async def play():
        async with stage(fails, TWO) as on, gpt(on.port) as client:
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(**ASK)
            told = caught.value.body["attempts"]
            assert [(one["target"], one["model"], one["key"], one["status"], one["reason"]) for one in told] == [
                ("first", "large", "one", 500, "target_error"),
                ("first", "large", "one", 500, "target_error"),
                ("second", "small", "two", 500, "target_error"),
                ("second", "small", "two", 500, "target_error"),
            ]
            assert all(one["ms"] >= 0 for one in told)
            assert len(on.stand_in.hits) == 4  # llm_gateways #61: 1 + 3 retries, rungs included
            assert on.ends == ["dead_lettered"]

    asyncio.run(play())


def test_llm_gateways_71_what_was_never_reached_is_listed_with_its_reason():
    """Four sends are the most, and a ladder may be longer; the model of a wildcard is the one that was sent."""
    text = TWO.replace('["first/large", "second/small"]', '["first/*", "first/b", "second/c", "second/d", "second/e"]')

    async def fails(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "it broke", "type": "server_error"}}, "500 Oops"))

    async def play():
        async with stage(fails, text) as on, gpt(on.port) as client:
            with pytest.raises(
                openai.InternalServerError, match="not tried: 1, since a call is sent at most"
            ) as caught:
                await client.chat.completions.create(**ASK)
            told = caught.value.body["attempts"]
            assert [one["model"] for one in told] == [ASK["model"], "b", "c", "d", "e"]
            assert {**told[-1], "key": None, "status": None, "ms": None} == told[-1]
            assert (told[-1]["target"], told[-1]["reason"]) == ("second", "policy_sends_used_up")
            assert len(on.stand_in.hits) == 4

    asyncio.run(play())


def test_llm_gateways_13_a_target_that_fails_all_the_time_is_not_called_first_by_every_call():
    async def serves(_stand_in, _hit, writer):
        writer.write(whole(UNARY))

    async def play():
        async with stage(serves, TWO) as on, gpt(on.port) as client:
            first, second = on.gate.ladders.by_model["m"]
            now_ms = on.gate.clock.now_ms()
            for _ in range(20):
                first.breaker.observe(classify(Signal(500)), 0, now_ms, now_ms)
            raw = await client.chat.completions.with_raw_response.create(**ASK)
            assert raw.headers["x-swarmgate-rung"] == "1"
            assert [hit.path for hit in on.stand_in.hits] == ["/second/chat/completions"]
            assert second.breaker.by_size[0].state is Circuit.CLOSED

    asyncio.run(play())


def test_the_last_rung_s_own_error_lists_those_before_it_too():
    async def fails(_stand_in, hit, writer):
        if hit.path.startswith("/first"):
            writer.write(whole(OVERLOADED, "529 Overloaded"))
        else:
            writer.write(whole({"error": {"message": "no model small", "code": "model_not_found"}}, "404 Not Found"))

    async def play():
        async with stage(fails, TWO) as on, gpt(on.port) as client:
            with pytest.raises(openai.NotFoundError, match="no model small") as caught:
                await client.chat.completions.create(**ASK)
            assert caught.value.code == "model_not_found"
            assert [(one["target"], one["status"], one["reason"]) for one in caught.value.body["attempts"]] == [
                ("first", 529, "target_capacity"),
                ("second", 404, "target_error"),
            ]
            assert on.ends == ["failed"]

    asyncio.run(play())


@pytest.mark.parametrize("body", [b"not found", b"[]", b'{"error":"gone"}', b'{"error":{"message":"x"}}'])
def test_what_is_no_object_of_an_error_is_relayed_as_it_came(body):
    call = Call("req-1", (Rung("up", "", {}, TargetRing(), RetryBudget()),), Room(), rank=1, arrived_ms=0)
    call.trail = (Tried(0, Reason.TARGET_CAPACITY), Tried(0, Reason.TARGET_ERROR))
    told = answers.with_trail(body, call)
    assert (told == body) is (b"message" not in body)


def test_llm_gateways_68_a_rung_whose_window_the_operator_tells_is_passed_over_by_a_longer_prompt():
    text = TWO.replace("second/small", "second/small8k").replace(
        "[targets.second]", '[targets.second]\nwindows = {{ "small8k" = 8_192 }}'
    )

    async def play():
        async with stage(failing(OVERLOADED, "529 Overloaded"), text) as on, gpt(on.port) as client:
            long = ASK | {"messages": [{"role": "user", "content": "word " * 40_000}]}
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**long)
            told = [(one["target"], one["model"], one["reason"]) for one in caught.value.body["attempts"]]
            assert ("second", "small8k", "policy_window_too_small") in told
            assert {hit.path for hit in on.stand_in.hits} == {"/first/chat/completions"}
            raw = await client.chat.completions.with_raw_response.create(**ASK)
            assert raw.headers["x-swarmgate-rung"] == "1"

    asyncio.run(play())


def test_the_first_rung_is_passed_over_by_a_prompt_that_certainly_does_not_fit():
    text = TWO.replace("[targets.second]", 'windows = {{ "*" = 8_192 }}\n[targets.second]')

    async def play():
        async with stage(either, text) as on, gpt(on.port) as client:
            for words, rung in ((10_000, "1"), (6_000, "0")):
                said = ASK | {"messages": [{"role": "user", "content": "word " * words}]}
                raw = await client.chat.completions.with_raw_response.create(**said)
                assert raw.headers["x-swarmgate-rung"] == rung
            assert [hit.path for hit in on.stand_in.hits] == ["/second/chat/completions", "/first/chat/completions"]
            alone = text.replace('["first/large", "second/small"]', '"first/large"')
        async with stage(either, alone) as on, gpt(on.port) as client:
            said = ASK | {"messages": [{"role": "user", "content": "word " * 10_000}]}
            raw = await client.chat.completions.with_raw_response.create(**said)
            assert raw.headers["x-swarmgate-rung"] == "0"

    asyncio.run(play())


def test_a_rung_that_speaks_otherwise_is_passed_over():
    chat_only = TWO.replace("[targets.second]", 'provider = "moonshot"\n\n[targets.second]')

    async def play():
        async with stage(text=chat_only) as on, claude(on.port) as theirs, gpt(on.port) as ours:
            raw = await theirs.messages.with_raw_response.create(**ASK)
            assert raw.headers["x-swarmgate-rung"] == "1"
            assert [hit.path for hit in on.stand_in.hits] == ["/second/messages"]
            await ours.chat.completions.create(**ASK)
            assert on.stand_in.hits[1].path == "/first/chat/completions"

    asyncio.run(play())


async def overloaded(_stand_in, _hit, writer):
    writer.write(whole(OVERLOADED, "529 Overloaded"))


def test_an_error_tells_of_the_rung_that_could_not_serve_too():
    chat_only = TWO.replace("[routes]", 'provider = "moonshot"\n\n[routes]')

    async def play():
        async with stage(overloaded, chat_only) as on, claude(on.port) as client:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(**ASK)
            error = caught.value.body["error"]
            assert error["code"] == "target_capacity"
            assert [(one["target"], one["reason"], one["ms"] is None) for one in error["attempts"]] == [
                *[("first", "target_capacity", False)] * 4,
                ("second", "policy_other_dialect", True),
            ]
            assert on.ends == ["dead_lettered"]

    asyncio.run(play())


def test_a_last_rung_with_too_small_a_limit_leaves_the_word_to_the_first():
    small = TWO.replace("[routes]", 'limits = ["90 tokens per 1m"]\nlargest_tokens = 20\n\n[routes]')

    async def play():
        async with stage(overloaded, small) as on, gpt(on.port) as client:
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**ASK | {"max_tokens": 900})
            assert caught.value.code == "target_capacity"
            assert "Target: first" in caught.value.message
            assert [(one["target"], one["reason"]) for one in caught.value.body["attempts"]] == [
                ("first", "target_capacity"),
                ("second", "policy_larger_than_limit"),
            ]
            assert [hit.path.split("/")[1] for hit in on.stand_in.hits] == ["first"]

    asyncio.run(play())


def test_no_rung_that_speaks_so_is_the_callers_error():
    chat_only = TWO.replace("keys", 'provider = "moonshot"\nkeys')

    async def play():
        async with stage(text=chat_only) as on, claude(on.port) as client:
            with pytest.raises(anthropic.BadRequestError) as caught:
                await client.messages.create(**ASK)
            error = caught.value.body["error"]
            assert error["code"] == "policy_other_dialect"
            assert [one["target"] for one in error["attempts"]] == ["first", "second"]
            assert on.stand_in.hits == []
            assert on.ends == ["refused"]

    asyncio.run(play())


def test_sc_08_09_each_target_sees_its_own_key_whatever_is_asked_tried_or_reused():
    text = TWO.replace('{{ two = "env:KEY" }}', '{{ two = "env:OTHER_KEY" }}')

    async def sometimes(stand_in, hit, writer):
        if hit.path.startswith("/first") and len(stand_in.hits) % 3:
            writer.write(whole(OVERLOADED, "529 Overloaded"))
        else:
            await either(stand_in, hit, writer)

    async def play():
        async with stage(sometimes, text) as on, gpt(on.port) as client:
            with pytest.raises(openai.PermissionDeniedError, match="another site"):
                await client.chat.completions.create(**ASK, extra_headers={"host": "evil.example"})
            evil = {"forwarded": "host=evil.example", "authorization": f"Bearer {OTHER_KEY}", "x-api-key": OTHER_KEY}
            asked = [
                client.chat.completions.create(
                    **ASK, extra_headers=evil, extra_body={"base_url": "http://evil.example"}
                )
                for _ in range(30)
            ]
            await asyncio.gather(*asked)
            seen = {(hit.path.split("/")[1], hit.headers["authorization"]) for hit in on.stand_in.hits}
            assert seen == {("first", f"Bearer {KEY}"), ("second", f"Bearer {OTHER_KEY}")}
            assert {hit.headers["host"] for hit in on.stand_in.hits} == {
                f"127.0.0.1:{on.gate.targets['first'].origin.port}"
            }
            assert all("x-api-key" not in hit.headers for hit in on.stand_in.hits)
            assert len(on.stand_in.hits) > 30

    asyncio.run(play())


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [("401 Unauthorized", "invalid_api_key", "target_key_refused"), ("402 Pay", "no_money", "target_no_money")],
)
def test_sc_02_an_error_about_our_key_is_not_shown(status, code, reason):
    async def refuses(_stand_in, hit, writer):
        message = f"Incorrect API key provided: {hit.headers['authorization']}"
        writer.write(whole({"error": {"message": message, "code": code}}, status))

    async def play():
        async with stage(refuses, TWO) as on, gpt(on.port) as client:
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**ASK)
            assert KEY not in caught.value.response.text
            assert KEY[:12] not in caught.value.response.text
            assert caught.value.code == reason
            assert caught.value.status_code == 502
            assert on.ends == ["failed"]

    asyncio.run(play())


def test_with_every_key_dead_the_answer_says_who_can_bring_them_back():
    async def refuses(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "no", "code": "invalid_api_key"}}, "401 Unauthorized"))

    async def play():
        async with stage(refuses, TWO.replace(', "second/small"', "")) as on, gpt(on.port) as client:
            with pytest.raises(openai.APIStatusError):
                await client.chat.completions.create(**ASK)
            with pytest.raises(openai.APIStatusError) as caught:
                await client.chat.completions.create(**ASK)
            assert caught.value.code == "policy_keys_out"
            assert "a person must look at them, then `swarmgate resume first --reason WHY`" in caught.value.message
            assert "return" not in caught.value.message
            assert len(on.stand_in.hits) == 1

    asyncio.run(play())


def test_an_error_inside_a_200_is_no_success():
    async def lies(_stand_in, _hit, writer):
        writer.write(whole(UNARY | {"error": {"message": "no", "type": "invalid_request_error"}}))

    async def play():
        async with stage(lies, TWO) as on, gpt(on.port) as client:
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(**ASK)
            assert caught.value.status_code == 502
            assert on.ends == ["dead_lettered"]

    asyncio.run(play())
