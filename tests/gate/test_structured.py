"""The last rung answers in the caller's form, or not at all."""

import asyncio
import json

import openai
import pytest
from msgspec import Raw
from sdks import ASK, OVERLOADED, TWO, gpt
from stage import DONE, FINISH, LAST, STREAM_HEAD, UNARY, framed, stage, token, whole

from swarmgate.gate.structured import fits, schema_in, text_of

SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


def said(text):
    return UNARY | {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    }


def small(text):
    """The first rung has no capacity, the second says `text`."""

    async def script(_stand_in, hit, writer):
        if hit.path.startswith("/first"):
            writer.write(whole(OVERLOADED, "529 Overloaded"))
        elif hit.said.get("stream"):
            writer.write(STREAM_HEAD)
            for piece in (*(token(one) for one in text), FINISH, DONE):
                writer.write(framed(piece))
                await writer.drain()
            writer.write(LAST)
        else:
            writer.write(whole(said(text)))

    return script


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_in_its_form_is_shown_whole(stream):
    async def play():
        async with stage(small('{"answer": 4}'), TWO) as on, gpt(on.port) as client:
            raw = await client.chat.completions.with_raw_response.create(**ASK, stream=stream, response_format=FORM)
            assert raw.headers["x-swarmgate-rung"] == "1"
            assert "content-length" in raw.headers
            if stream:
                pieces = [chunk.choices[0].delta.content or "" async for chunk in raw.parse()]
                assert json.loads("".join(pieces)) == {"answer": 4}
            else:
                assert json.loads(raw.parse().choices[0].message.content) == {"answer": 4}
            assert on.ends == ["answered"]

    asyncio.run(play())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", ['{"answer": "four"}', "Sure! The answer is 4."])
def test_ov_14_bad_json_of_the_last_rung_is_an_error_that_lists_all(text, stream):
    async def play():
        async with stage(small(text), TWO) as on, gpt(on.port) as client:
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(**ASK, stream=stream, response_format=FORM)
            assert caught.value.code == "target_bad_output"
            assert [one["reason"] for one in caught.value.body["attempts"]] == ["target_capacity", "target_bad_output"]
            assert on.ends == ["failed"]

    asyncio.run(play())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "small_by", ['windows = {{ "tiny" = 9 }}', 'limits = ["90 tokens per 1m"]\nlargest_tokens = 20']
)
def test_the_last_rung_that_can_serve_is_checked_where_those_below_cannot(small_by, stream):
    """A third rung whose window or budget is too small is passed over, so the second is the last."""
    third = f'[targets.third]\nbase_url = "http://127.0.0.1:{{port}}/third"\nkeys = {{{{ one = "env:KEY" }}}}\n{small_by}\n\n'
    three = TWO.replace("[routes]", third + "[routes]").replace('"second/small"', '"second/small", "third/tiny"')

    async def play():
        async with stage(small("Sure! The answer is 4."), three) as on, gpt(on.port) as client:
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(**ASK | {"max_tokens": 900}, stream=stream, response_format=FORM)
            assert caught.value.code == "target_bad_output"
            assert on.ends == ["failed"]

    asyncio.run(play())


def test_the_first_rung_is_not_checked_and_nor_is_who_asks_for_no_form():
    async def play():
        async with stage(small("words"), TWO) as on, gpt(on.port) as client:
            answer = await client.chat.completions.create(**ASK)
            assert answer.choices[0].message.content == "words"
        only = TWO.replace('"first/large", ', "")
        async with stage(small("words"), only) as on, gpt(on.port) as client:
            answer = await client.chat.completions.create(**ASK, response_format=FORM)
            assert answer.choices[0].message.content == "words"

    asyncio.run(play())


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": FORM},
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    ],
)
def test_where_a_schema_stands(fields):
    assert schema_in({key: Raw(json.dumps(value).encode()) for key, value in fields.items()}) == SCHEMA


@pytest.mark.parametrize("form", [{"type": "json_object"}, [], None, {"json_schema": 3}, {"format": {"format": "x"}}])
def test_what_is_no_schema(form):
    assert schema_in({"response_format": Raw(json.dumps(form).encode())}) is None


TWICE_EACH = {
    "$ref": "#/$defs/0",
    "$defs": {str(number): {"allOf": [{"$ref": f"#/$defs/{number + 1}"}] * 2} for number in range(40)}
    | {"40": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("schema", "text", "holds"),
    [
        (SCHEMA, '{"answer":1}', True),
        (SCHEMA, '{"answer":1.5}', False),
        (SCHEMA, "[" * 5_000, False),
        ({"$ref": "http://127.0.0.1:9/steal"}, "{}", True),  # nothing is fetched
        ({"type": "nonsense"}, "{}", True),
        ({"type": "string", "pattern": "(a+)+$"}, json.dumps("a" * 40 + "b"), True),  # nor is a pattern run
        ({"$ref": "#"}, "{}", True),
        (TWICE_EACH, "1", True),  # 2^40 looks are not taken
        ({"uniqueItems": True}, json.dumps([{"a": number} for number in range(20_000)]), True),
        ({"uniqueItems": True}, "[1,1]", False),
    ],
)
def test_a_schema_cannot_harm_the_gate(schema, text, holds):
    assert fits(schema, text) is holds


@pytest.mark.parametrize(
    ("body", "is_stream", "text"),
    [
        (json.dumps(said("a")).encode(), False, "a"),
        (b'{"output":[{"content":[{"type":"output_text","text":"a"},{"text":"b"}]}]}', False, "ab"),
        (b'{"content":[{"type":"text","text":"a"}]}', False, "a"),
        (b"nothing", False, ""),
        (token("a") + token("b") + DONE, True, "ab"),
        (b'event: x\ndata: {"type":"response.output_text.delta","delta":"a"}\n\n', True, "a"),
        (b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\r\n\r\n', True, "a"),
    ],
)
def test_the_text_of_an_answer(body, is_stream, text):
    assert text_of(body, is_stream=is_stream) == text
