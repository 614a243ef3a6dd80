"""OpenAI's Responses, as a stand-in says them: whole, and as named events. It remembers none of them."""

from typing import Any

from swarmgate.lab.standin.question import Question
from swarmgate.lab.standin.speech import encoded, named_event

_AT = {"output_index": 0}
_IN_TEXT = {"output_index": 0, "content_index": 0}


def answer(question: Question) -> bytes:
    """A response."""
    return encoded(_response(question, whole=True))


def begin(question: Question) -> bytes:
    """The response, its one item, and the part of it that gets the text."""
    empty = _response(question, whole=False)
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": empty}),
        ("response.in_progress", {"response": empty}),
        ("response.output_item.added", _AT | {"item": _item(question, "", "in_progress")}),
    ]
    if not question.tool:
        events.append(("response.content_part.added", _IN_TEXT | {"item_id": _id(question), "part": _part("")}))
    return b"".join(named_event(name, sequence_number=at, **data) for at, (name, data) in enumerate(events))


def piece(question: Question, at: int, text: str) -> bytes:
    """A delta."""
    said = {"item_id": _id(question), "delta": text, "sequence_number": _first(question) + at}
    if question.tool:
        return named_event("response.function_call_arguments.delta", **_AT, **said)
    return named_event("response.output_text.delta", **_IN_TEXT, **said, logprobs=[])


def end(question: Question, pieces: int) -> bytes:
    """All of the text, its part, its item, the response with its usage."""
    about, text = {"item_id": _id(question)}, question.said
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.output_text.done", _IN_TEXT | about | {"text": text, "logprobs": []}),
        ("response.content_part.done", _IN_TEXT | about | {"part": _part(text)}),
    ]
    if question.tool:
        said = {"name": question.tool, "arguments": text}
        events = [("response.function_call_arguments.done", _AT | about | said)]
    events += [
        ("response.output_item.done", _AT | {"item": _item(question, text, "completed")}),
        ("response.completed", {"response": _response(question, whole=True)}),
    ]
    first = _first(question) + pieces
    return b"".join(named_event(name, sequence_number=at, **data) for at, (name, data) in enumerate(events, first))


def error_event() -> bytes:
    """Overload in a stream that had begun with 200."""
    said = {"code": "server_is_overloaded", "message": "The server is overloaded.", "param": None}
    return named_event("error", **said, error=said | {"type": "server_error"}, sequence_number=0)


def _first(question: Question) -> int:
    """The number of the first event with content."""
    return 3 if question.tool else 4


def _id(question: Question) -> str:
    return f"{'fc' if question.tool else 'msg'}_{question.number}"


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item(question: Question, text: str, status: str) -> dict[str, Any]:
    if question.tool:
        said = {"call_id": f"call_{question.number}", "name": question.tool, "arguments": text}
        return {"id": _id(question), "type": "function_call", "status": status} | said
    content = [_part(text)] if status == "completed" else []
    return {"id": _id(question), "type": "message", "role": "assistant", "status": status, "content": content}


def _response(question: Question, *, whole: bool) -> dict[str, object]:
    prompt, output = question.prompt_tokens, question.output_tokens
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + output,
    }
    return {
        "id": f"resp_{question.number}",
        "object": "response",
        "created_at": 0,
        "model": question.model,
        "status": "completed" if whole else "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": [_item(question, question.said, "completed")] if whole else [],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if whole else None,
    }
