"""OpenAI's older completions, as a stand-in says them: whole, and as chunks."""

from swarmgate.lab.standin.chat import DONE, error_event, usage
from swarmgate.lab.standin.question import Question
from swarmgate.lab.standin.speech import data_event, encoded

__all__ = ["answer", "begin", "end", "error_event", "piece"]


def answer(question: Question) -> bytes:
    """A text_completion."""
    return encoded(_said(question, question.said, "stop") | {"usage": usage(question)})


def begin(question: Question) -> bytes:
    """No text yet."""
    return data_event(_said(question, "", None))


def piece(question: Question, _at: int, text: str) -> bytes:
    """More of the text."""
    return data_event(_said(question, text, None))


def end(question: Question, _pieces: int) -> bytes:
    """The reason, the usage if it was asked for, `[DONE]`."""
    last = data_event(_said(question, "", "stop"))
    if question.wants_usage:
        last += data_event(_said(question, "", None) | {"choices": [], "usage": usage(question)})
    return last + DONE


def _said(question: Question, text: str, reason: str | None) -> dict[str, object]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
    head = {"id": f"cmpl-{question.number}", "object": "text_completion", "created": 0, "model": question.model}
    return head | {"choices": [choice]}
