"""Every service of the stand-ins, asked by the official SDKs through a gate, as an agent of one's own would ask them."""

import asyncio
import json
from contextlib import asynccontextmanager

import anthropic
import openai
import pytest
from pydantic import BaseModel
from stage import stage

from swarmgate.lab.standin.plan import StandInPlan
from swarmgate.lab.standin.serving import StandIns

WIDE = [[{"kind": "sliding_log", "limit": 1_000, "window_ms": 60_000}]]
PLAN = StandInPlan.model_validate(
    {
        "providers": [
            {"name": "p", "dialect": "openai", "limits": WIDE, "latency": "gpt-5.4-nano"},
            {"name": "q", "dialect": "anthropic", "limits": WIDE, "latency": "gpt-5.4-nano"},
        ]
    }
)
CONFIG = """
[targets.p]
base_url = "http://127.0.0.1:{p}/v1"
keys = {{{{ one = "env:KEY" }}}}

[targets.q]
base_url = "http://127.0.0.1:{q}/v1"
provider = "anthropic"
keys = {{{{ two = "env:OTHER_KEY" }}}}

[routes]
claude-x = ["q/claude-x"]
"*" = ["p/*"]
"""
SECRETS = {"KEY": PLAN.providers[0].key_of(1), "OTHER_KEY": PLAN.providers[1].key_of(1)}
SIZES = {"type": "object", "properties": {"width": {"type": "integer", "minimum": 3}}, "required": ["width"]}
FUNCTION = {"name": "resize", "description": "Resize it.", "parameters": SIZES}
WISH = [{"role": "user", "content": "Answer in 12 tokens."}]


class Finding(BaseModel):
    """What an agent wants to read."""

    title: str
    score: float
    sources: list[str]


@asynccontextmanager
async def clients():
    """Both SDKs before a gate, and the stand-ins behind it, which are in a hurry."""
    stand_ins = StandIns(asyncio.get_running_loop(), PLAN)
    ports = await stand_ins.start()
    for place in "pq":
        stand_ins.command({"kind": "slow", "place": place, "for_ms": 600_000, "amount": 1})
    try:
        async with stage(text=CONFIG.format(**ports), **SECRETS) as gate:
            gpt = openai.AsyncOpenAI(base_url=gate.url, api_key="agent", max_retries=0)
            claude = anthropic.AsyncAnthropic(base_url=f"http://127.0.0.1:{gate.port}", api_key="agent", max_retries=0)
            async with gpt, claude:
                yield gpt, claude
    finally:
        await stand_ins.stop()
        await asyncio.sleep(0)  # the last callbacks of its sockets


def played(story):
    """A story with both clients."""

    async def play():
        async with clients() as both:
            await story(*both)

    asyncio.run(play())


def test_responses_whole_and_streamed():
    async def story(gpt, _claude):
        one = await gpt.responses.create(model="m", input="Answer in 12 tokens.")
        assert (len(one.output_text), one.usage.output_tokens, one.status) == (48, 12, "completed")
        async with gpt.responses.stream(model="m", input=WISH, instructions="Be short.") as stream:
            numbers = [event.sequence_number async for event in stream]
            final = await stream.get_final_response()
        assert numbers == list(range(len(numbers)))
        assert (final.output_text, final.usage.output_tokens) == (one.output_text, 12)
        assert final.usage.input_tokens == one.usage.input_tokens + 3  # the instructions

    played(story)


def test_completions_whole_and_streamed():
    async def story(gpt, _claude):
        ask = {"model": "m", "prompt": ["Go on.", "Answer in 12 tokens."]}
        one = await gpt.completions.create(**ask)
        assert (len(one.choices[0].text), one.usage.completion_tokens) == (48, 12)
        stream = await gpt.completions.create(**ask, stream=True, stream_options={"include_usage": True})
        parts = [part async for part in stream]
        assert "".join(part.choices[0].text for part in parts if part.choices) == one.choices[0].text
        assert parts[-1].usage == one.usage

    played(story)


def test_structured_output_is_what_was_asked_for():
    async def story(gpt, claude):
        chat = await gpt.chat.completions.parse(model="m", messages=WISH, response_format=Finding)
        response = await gpt.responses.parse(model="m", input="hi", text_format=Finding)
        message = await claude.messages.parse(model="claude-x", max_tokens=500, messages=WISH, output_format=Finding)
        found = [chat.choices[0].message.parsed, response.output_parsed, message.parsed_output]
        assert all(isinstance(one, Finding) and one.sources for one in found)
        async with gpt.chat.completions.stream(model="m", messages=WISH, response_format=Finding) as stream:
            assert (await stream.get_final_completion()).choices[0].message.parsed == found[0]
        async with gpt.responses.stream(model="m", input="hi", text_format=Finding) as stream:
            assert (await stream.get_final_response()).output_parsed == found[0]
        free = await gpt.chat.completions.create(model="m", messages=WISH, response_format={"type": "json_object"})
        assert isinstance(json.loads(free.choices[0].message.content), dict)

    played(story)


@pytest.mark.parametrize(
    ("choice", "words", "is_called"),
    [
        ("required", "hi", True),
        ({"type": "function", "function": {"name": "resize"}}, "hi", True),
        ("auto", "Call the tool resize.", True),
        ("auto", "hi", False),  # what it says is nonsense, and tools may have effects
        ("none", "Call the tool resize.", False),
    ],
)
def test_a_tool_is_called_if_it_must_be_or_if_the_prompt_says_so(choice, words, is_called):
    async def story(gpt, _claude):
        ask = {"model": "m", "messages": [{"role": "user", "content": words}], "tool_choice": choice}
        ask["tools"] = [{"type": "function", "function": FUNCTION}]
        whole = (await gpt.chat.completions.create(**ask)).choices[0]
        async with gpt.chat.completions.stream(**ask) as stream:
            streamed = (await stream.get_final_completion()).choices[0]
        for one in (whole, streamed):
            assert one.finish_reason == ("tool_calls" if is_called else "stop")
            told = [(call.function.name, json.loads(call.function.arguments)) for call in one.message.tool_calls or ()]
            assert told == [("resize", {"width": 3})] * is_called

    played(story)


def test_tools_of_responses_and_messages_and_what_they_gave():
    async def story(gpt, claude):
        tool = {"type": "function", **FUNCTION}
        ask = {"model": "m", "input": "hi", "tools": [tool], "tool_choice": "required"}
        whole = await gpt.responses.create(**ask)
        async with gpt.responses.stream(**ask) as stream:
            streamed = await stream.get_final_response()
        for one in (whole, streamed):
            assert (one.output[0].name, json.loads(one.output[0].arguments)) == ("resize", {"width": 3})
        gave = {"type": "function_call_output", "call_id": whole.output[0].call_id, "output": "Answer in 3 tokens."}
        after = await gpt.responses.create(model="m", input=[*WISH, whole.output[0].model_dump(), gave], tools=[tool])
        assert len(after.output_text) == 12
        tool = {"name": "resize", "input_schema": SIZES}
        ask = {"model": "claude-x", "max_tokens": 99, "messages": WISH, "tools": [tool], "tool_choice": {"type": "any"}}
        whole = await claude.messages.create(**ask)
        async with claude.messages.stream(**ask) as stream:
            streamed = await stream.get_final_message()
        for one in (whole, streamed):
            assert (one.stop_reason, one.content[0].name, one.content[0].input) == ("tool_use", "resize", {"width": 3})

    played(story)


def test_tokens_are_counted_and_texts_have_vectors_of_their_own():
    async def story(gpt, claude):
        count = await claude.messages.count_tokens(model="claude-x", messages=WISH, system="x" * 40)
        assert count.input_tokens == 17
        one, two, again = (await gpt.embeddings.create(model="e", input=["a", "b", "a"])).data
        assert one.embedding == again.embedding != two.embedding
        assert sum(x * x for x in one.embedding) == pytest.approx(1, abs=1e-5)
        short = await gpt.embeddings.create(model="e", input=[1, 2, 3], dimensions=8, encoding_format="float")
        assert ([len(one.embedding) for one in short.data], short.usage.prompt_tokens) == ([8], 3)

    played(story)


def test_what_cannot_be_answered_is_an_error_that_says_why():
    async def story(gpt, _claude):
        ask = {"model": "m", "messages": WISH}
        form = {"name": "f", "schema": {"type": "string", "pattern": "^[0-9]{7}$"}}
        with pytest.raises(openai.BadRequestError, match=r"pattern.*\$"):
            await gpt.chat.completions.create(**ask, response_format={"type": "json_schema", "json_schema": form})
        with pytest.raises(openai.BadRequestError, match="'other' is none of the tools"):
            await gpt.chat.completions.create(
                **ask,
                tools=[{"type": "function", "function": FUNCTION}],
                tool_choice={"type": "function", "function": {"name": "other"}},
            )
        with pytest.raises(openai.NotFoundError):
            await gpt.moderations.create(model="m", input="hi")

    played(story)
