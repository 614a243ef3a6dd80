"""
A conversation as its turns, and with some of them replaced by a summary: OpenAI's chats and Anthropic's messages.

Each message is passed on as the bytes that came; only what identifies it is read.
"""

from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from swarmgate.core.context import Cut, Turn
from swarmgate.core.errors import BadInput
from swarmgate.core.estimate import BYTES_PER_TOKEN
from swarmgate.gate.peek import peek
from swarmgate.gate.peeked import Peeked
from swarmgate.providers.dialect import CHAT, MESSAGES


class _Said(msgspec.Struct, gc=False):
    """What every message has."""

    role: str


_roles: Final = msgspec.json.Decoder(
    list[_Said]
).decode  # counts messages; a list of millions of numbers ends at its first
_list: Final = msgspec.json.Decoder(list[Raw]).decode
_message: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode
MOST_TURNS: Final = 4_096  # some 20 ms of the loop; a longer conversation is not made shorter here
_SIGNED: Final = frozenset({"thinking", "redacted_thinking"})
ASKING: Final = (
    "Summarise the conversation below for whoever continues it: goals, facts with their numbers and names, decisions, "
    "what was tried, and what is open. Answer with the summary alone."
)
OPENING: Final = "Summary of the conversation up to here:\n"


class Conversation(NamedTuple):
    """The messages as they came, what is known of each, and the tokens of the prompt beside them."""

    messages: list[Raw]
    turns: list[Turn]
    beside_tokens: int


def read_conversation(peeked: Peeked, path: bytes) -> Conversation | None:
    """The turns of a request; None if it has none, or too many to look at. Errors: `BadInput` if they are no messages."""
    if path.decode("ascii", "replace") not in {CHAT, MESSAGES} or "messages" not in peeked.fields:
        return None
    try:
        if len(_roles(peeked.fields["messages"])) > MOST_TURNS:
            return None
        messages = _list(peeked.fields["messages"])
        turns = [_turn(raw) for raw in messages]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput("messages", f"is no list of messages: {error}") from None
    return Conversation(messages, turns, max(0, peeked.prompt_tokens - sum(turn.tokens for turn in turns)))


def dropped(conversation: Conversation, cut: Cut) -> bytes:
    """The turns that a summary stands for, as they came."""
    return b"\n".join(bytes(conversation.messages[at]) for at in cut.dropped)


def shortened(peeked: Peeked, conversation: Conversation, cut: Cut, summary: str) -> Peeked:
    """The request with a summary in the place of the first turn that is dropped."""
    gone = set(cut.dropped)
    said = Raw(_encode({"role": "user", "content": OPENING + summary}))
    kept = [
        said if at == cut.dropped[0] else raw
        for at, raw in enumerate(conversation.messages)
        if at not in gone or at == cut.dropped[0]
    ]
    return peek(_encode(peeked.fields | {"messages": kept}))


def request_for(peeked: Peeked, path: bytes, story: bytes, most_tokens: int) -> bytes:
    """The body of the call that makes a summary, in the dialect of the one that needs it."""
    limit = "max_completion_tokens" if "max_completion_tokens" in peeked.fields else "max_tokens"
    asked = {"role": "user", "content": story.decode("utf-8", "replace")}
    if path.decode("ascii", "replace") == MESSAGES:
        return _encode({"model": peeked.model, limit: most_tokens, "system": ASKING, "messages": [asked]})
    return _encode(
        {"model": peeked.model, limit: most_tokens, "messages": [{"role": "system", "content": ASKING}, asked]}
    )


def summary_in(body: bytes) -> str:
    """The text of an answer; empty if it has none."""
    try:
        said = _message(body)
        if "choices" in said:
            return str(said["choices"][0]["message"]["content"] or "")
        return "".join(block["text"] for block in said["content"] if block.get("type") == "text")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return ""


def _turn(raw: Raw) -> Turn:
    said = _message(raw)
    content = said.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    calls = [call.get("id") for call in said.get("tool_calls") or () if isinstance(call, dict)]
    calls += [said.get("tool_call_id"), *(block.get("tool_use_id") for block in blocks)]
    calls += [block.get("id") for block in blocks if block.get("type") == "tool_use"]
    signed = any(block.get("type") in _SIGNED for block in blocks)
    names = frozenset(name for name in calls if isinstance(name, str))
    return Turn(str(said.get("role")), memoryview(raw).nbytes // BYTES_PER_TOKEN + 1, names, signed)
