"""OpenAI's chat completions, as a stand-in says them: whole, and as chunks."""

from swarmgate.lab.standin.question import Question
from swarmgate.lab.standin.speech import data_event, encoded

DONE = b"data: [DONE]\n\n"


def answer(question: Question) -> bytes:
    """A chat.completion."""
    message: dict[str, object] = {"role": "assistant", "content": question.said}
    if question.tool:
        message |= {"content": None, "tool_calls": [_call(question, question.said)]}
    choice = {"index": 0, "message": message, "finish_reason": _reason(question)}
    return encoded(_head(question, "chat.completion") | {"choices": [choice], "usage": usage(question)})


def begin(question: Question) -> bytes:
    """The role, and the tool's name if one is called."""
    delta: dict[str, object] = {"role": "assistant", "content": ""}
    if question.tool:
        delta |= {"content": None, "tool_calls": [_call(question, "") | {"index": 0}]}
    return _event(question, delta, None)


def piece(question: Question, _at: int, text: str) -> bytes:
    """A delta."""
    if question.tool:
        return _event(question, {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, None)
    return _event(question, {"content": text}, None)


def end(question: Question, _pieces: int) -> bytes:
    """The reason, the usage if it was asked for, `[DONE]`."""
    last = _event(question, {}, _reason(question))
    if question.wants_usage:
        last += data_event(_head(question, "chat.completion.chunk") | {"choices": [], "usage": usage(question)})
    return last + DONE


def error_event() -> bytes:
    """Overload in a stream that had begun with 200."""
    said = {"message": "The server is overloaded.", "type": "server_error", "code": "server_is_overloaded"}
    return data_event({"error": said})


def usage(question: Question) -> dict[str, int]:
    """What it counted."""
    prompt, output = question.prompt_tokens, question.output_tokens
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def _call(question: Question, arguments: str) -> dict[str, object]:
    function = {"name": question.tool, "arguments": arguments}
    return {"id": f"call_{question.number}", "type": "function", "function": function}


def _reason(question: Question) -> str:
    return "tool_calls" if question.tool else "stop"


def _head(question: Question, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{question.number}", "object": kind, "created": 0, "model": question.model}


def _event(question: Question, delta: dict[str, object], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return data_event(_head(question, "chat.completion.chunk") | {"choices": [choice]})
