"""Anthropic's messages, as a stand-in says them: whole, as named events, and counted only."""

from typing import Any

import msgspec

from swarmgate.lab.standin.question import Question
from swarmgate.lab.standin.speech import encoded, named_event


def answer(question: Question) -> bytes:
    """A message."""
    content = _block(question, question.said)
    end = {"content": [content], "stop_reason": _reason(question)}
    return encoded(_message(question, question.output_tokens) | end)


def count(question: Question) -> bytes:
    """What count_tokens tells."""
    return encoded({"input_tokens": question.prompt_tokens})


def begin(question: Question) -> bytes:
    """message_start, with the prompt's usage, and the block's start."""
    start = named_event("message_start", message=_message(question, 1))
    return start + named_event("content_block_start", index=0, content_block=_block(question, ""))


def piece(question: Question, _at: int, text: str) -> bytes:
    """A delta."""
    delta = (
        {"type": "input_json_delta", "partial_json": text} if question.tool else {"type": "text_delta", "text": text}
    )
    return named_event("content_block_delta", index=0, delta=delta)


def end(question: Question, _pieces: int) -> bytes:
    """The block's stop, the usage, message_stop."""
    delta = {"stop_reason": _reason(question)}
    last = named_event("message_delta", delta=delta, usage={"output_tokens": question.output_tokens})
    return named_event("content_block_stop", index=0) + last + named_event("message_stop")


def error_event() -> bytes:
    """Overload in a stream that had begun with 200."""
    return named_event("error", error={"type": "overloaded_error", "message": "Overloaded"})


def _reason(question: Question) -> str:
    return "tool_use" if question.tool else "end_turn"


def _block(question: Question, text: str) -> dict[str, Any]:
    if not question.tool:
        return {"type": "text", "text": text}
    arguments = msgspec.json.decode(text) if text else {}
    return {"type": "tool_use", "id": f"toolu_{question.number}", "name": question.tool, "input": arguments}


def _message(question: Question, output_tokens: int) -> dict[str, object]:
    usage = {"input_tokens": question.prompt_tokens, "output_tokens": output_tokens}
    head = {"id": f"msg_{question.number}", "type": "message", "role": "assistant", "model": question.model}
    return head | {"content": [], "stop_reason": None, "usage": usage}
