"""
A model call as a stand-in reads it, whatever the path: what it costs, how long an answer it wants, and in which form.

A model answers with as many tokens as its prompt asks for ("Answer in 350 tokens."), four characters each, so that any gateway
between carries the wish ("in 350 tokens of a chain": chain.py). Where a schema or a tool is asked for, it says a value that follows the schema (sample.py). It calls a
tool only if it must, or if the prompt says so ("Call the tool add."): what it says is nonsense, and tools may have effects.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from swarmgate.lab.chain import chained
from swarmgate.lab.errors import LabError
from swarmgate.lab.standin.sample import sample_text

CHARS_PER_TOKEN = 4
USUAL_OUTPUT_TOKENS = 100
MOST_OUTPUT_TOKENS = 32_768
USUAL_CAP_TOKENS = 4_096
_WISH = re.compile(r"[Aa]nswer in (\d{1,6}) tokens( of a chain)?")
_TOOL_WISH = re.compile(r"[Cc]all the tool ([\w-]{1,64})")
_FILLER = "and so the measured rate of each host was kept below what it sustains, "
TEXT = _FILLER * (MOST_OUTPUT_TOKENS * CHARS_PER_TOKEN // len(_FILLER) + 1)
_ANY_OBJECT = b'{"type":"object","required":["answer"],"properties":{"answer":{"type":"string"}}}'
_FORM_PLACES = ("response_format", "text", "output_config")  # chat, Responses, Messages
_MUST = frozenset({"required", "any"})


class Question(NamedTuple):
    """
    What it costs and what it asks for; `call` is who says it is asking, `number` makes ids.

    `words` are what must be said, of `output_tokens` tokens; with a `tool` they are the arguments of its call.
    """

    call: str
    model: str
    is_stream: bool
    wants_usage: bool
    prompt_tokens: int
    output_tokens: int
    cap_tokens: int
    words: str = TEXT
    tool: str = ""
    number: int = 0

    @property
    def said(self) -> str:
        """All that the answer says."""
        return self.words[: self.output_tokens * CHARS_PER_TOKEN]


class _Part(msgspec.Struct):
    """A message of a chat, or an item of a response's input."""

    content: Any = ""
    output: Any = ""
    arguments: Any = ""


class _Body(msgspec.Struct):
    model: str
    messages: list[_Part] = []
    input: str | list[_Part] = ""
    prompt: str | list[str] = ""
    system: Any = ""
    instructions: str | None = None
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    user: str | None = ""
    metadata: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Body).decode


def read_question(body: bytes, number: int = 0) -> Question:
    """
    The call in a body. Errors: `msgspec.DecodeError`; `LabError` about a tool or schema that nothing can be said to.

    It costs ceil(characters / 4) of its contents, one token a message and one more: what OpenAI charged in 9 of 10 of
    939 recorded calls. Tools count as their JSON.
    """
    said = _decode(body)
    parts = said.messages or _parts(said.input or said.prompt)
    texts = [_text(part.content or part.output or part.arguments) for part in parts] or [""]
    chars = sum(map(len, texts)) + len(_text(said.system)) + len(said.instructions or "")
    end = texts[-1][-200:]
    cap = said.max_completion_tokens or said.max_tokens or said.max_output_tokens or USUAL_CAP_TOKENS
    wish = _WISH.search(end)
    output_tokens = max(1, min(int(wish[1]) if wish else USUAL_OUTPUT_TOKENS, MOST_OUTPUT_TOKENS, cap))
    call = said.user or str((said.metadata or {}).get("user_id", ""))
    words, tool = chained(call, output_tokens) if wish and wish[2] else TEXT, ""
    if said.tools:
        chars += len(msgspec.json.encode(said.tools))
        tool = _tool_of(said, end)
    schema = _parameters(said, tool) if tool else _form_of(said)
    if schema is not None:  # it is said whole, whatever the cap: half of a form is none
        words = sample_text(schema)
        output_tokens = -(-len(words) // CHARS_PER_TOKEN)
    return Question(
        call=call,
        model=said.model,
        is_stream=bool(said.stream),
        wants_usage=bool((said.stream_options or {}).get("include_usage")),
        prompt_tokens=-(-chars // CHARS_PER_TOKEN) + len(parts) + 1,
        output_tokens=output_tokens,
        cap_tokens=cap,
        words=words,
        tool=tool,
        number=number,
    )


def _parts(asked: str | list[str] | list[_Part]) -> list[_Part]:
    """What is asked without messages: of Responses and of completions."""
    every = [asked] if isinstance(asked, str) else asked
    return [_Part(one) if isinstance(one, str) else one for one in every]


def _text(content: object) -> str:
    return content if isinstance(content, str) else "".join(_texts(content))


def _texts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        match part:
            case {"text": str(text)}:
                yield text
            case {"content": inner}:  # what a tool gave, in Anthropic's blocks
                yield _text(inner)


def _tool_of(said: _Body, end: str) -> str:
    """The tool that this answer must call; empty if it need not call any."""
    wish = _TOOL_WISH.search(end)
    match said.tool_choice:
        case "none" | {"type": "none"}:
            return ""
        case str(word) | {"type": str(word)} if word in _MUST:
            return wish[1] if wish else next(filter(None, map(_name, said.tools or ())), "")
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            return name
    return wish[1] if wish else ""


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a tool says of itself: below `function` in a chat."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def _name(tool: Mapping[str, Any]) -> str:
    return str(_function(tool).get("name", ""))


def _parameters(said: _Body, name: str) -> bytes:
    for tool in said.tools or ():
        if _name(tool) == name:
            one = _function(tool)
            return msgspec.json.encode(one.get("parameters") or one.get("input_schema") or {"type": "object"})
    raise LabError("tool_choice", f"{name!r} is none of the tools")


def _form_of(said: _Body) -> bytes | None:
    """The schema that the answer must follow; None if none is asked for."""
    for place in _FORM_PLACES:
        match getattr(said, place):
            case {"type": "json_object"} | {"format": {"type": "json_object"}}:
                return _ANY_OBJECT
            case {"json_schema": {"schema": dict(schema)}} | {"format": {"schema": dict(schema)}}:
                return msgspec.json.encode(schema)
    return None
