"""
What `swarmgate explain` can read: answers as they were recorded, or as somebody pasted them.

Recordings are `{"request": ..., "response": ...}`, or `steps` of them. Answers are `{"status": ..., "headers": ..., "body": ...}`,
raw HTTP as `curl -i` prints it, or a body alone, JSON or events, of which nobody says what status it had.
"""

import json
import re
from typing import NamedTuple

from swarmgate.core.errors import BadInput
from swarmgate.gate.understanding import UNTOLD, Answer, says_something

_EVENTS = re.compile(rb"\s*(?:data|event|id|retry)?:")  # a stream begins with a field or a comment
_BODIES = ("body", "body_text", "json", "text", "sse")
_FORMS = 'a recording, {"status", "headers", "body"}, raw HTTP that begins with its status line, or a body alone that says something'


class Recorded(NamedTuple):
    """One answer, and what its file says of where it came from; empty = not told."""

    answer: Answer
    host: str = ""
    provider: str = ""


def read(text: str) -> list[Recorded]:
    """The answers in a file's text. Errors: `BadInput` that names what can be read."""
    text = text.removeprefix("\ufeff").lstrip()
    if text.startswith("HTTP/"):
        return [Recorded(_raw(text))]
    if _EVENTS.match(text.encode("utf-8", "replace")):
        return [Recorded(_alone(text))]
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("file", f"is neither JSON nor HTTP nor events; it can be {_FORMS}") from None
    if isinstance(said, list) and says_something(text.encode("utf-8", "replace")):
        return [Recorded(_alone(text))]
    steps = said.get("steps") if isinstance(said, dict) else None
    return [_recorded(step) for step in steps] if isinstance(steps, list) and steps else [_recorded(said)]


def _recorded(said: object) -> Recorded:
    if not isinstance(said, dict):
        raise BadInput("file", f"holds no answer; it can be {_FORMS}")
    response, request = said.get("response", said), said.get("request")
    status = response.get("status") if isinstance(response, dict) else None
    body = (
        _body(next((response[key] for key in _BODIES if response.get(key)), "")) if isinstance(response, dict) else b""
    )
    if isinstance(response, dict) and (status is None or isinstance(status, str)):
        body = body if says_something(body) else json.dumps(response).encode()
        status = UNTOLD if says_something(body) else None
    if not isinstance(status, int) or isinstance(status, bool) or not (status == UNTOLD or 100 <= status <= 999):
        raise BadInput("file", f"has no status between 100 and 999; it can be {_FORMS}")
    host = request.get("host") if isinstance(request, dict) else said.get("host")
    return Recorded(
        _answer(status, _headers(response.get("headers")), body),
        host if isinstance(host, str) else "",
        str(said.get("provider") or ""),
    )


def _alone(text: str) -> Answer:
    """A body without its head."""
    body = text.encode("utf-8", "replace")
    if not says_something(body):
        raise BadInput("file", f"holds no answer; it can be {_FORMS}")
    return _answer(UNTOLD, (), body)


def _answer(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
    """The answer; what was copied without its headers is a stream of events if it looks like one."""
    if _EVENTS.match(body) and "content-type" not in dict(headers):
        headers = (*headers, ("content-type", "text/event-stream"))
    return Answer(status, headers, body)


def _headers(said: object) -> tuple[tuple[str, str], ...]:
    pairs = said.items() if isinstance(said, dict) else said if isinstance(said, list) else ()
    try:
        return tuple((str(name).lower(), str(value)) for name, value in pairs)
    except (TypeError, ValueError):
        raise BadInput("file", "has headers that are neither an object nor a list of pairs") from None


def _body(said: object) -> bytes:
    if isinstance(said, list) and all(isinstance(event, str) for event in said):
        said = "".join(said)
    return (said if isinstance(said, str) else json.dumps(said)).encode("utf-8", "replace")


def _raw(text: str) -> Answer:
    head, body = "", text
    while body.startswith("HTTP/"):  # after a 100 Continue, a proxy's word or a redirect comes the answer itself
        head, _, body = body.replace("\r\n", "\n").partition("\n\n")
    start, *lines = head.split("\n")
    status = start.split(" ")[1] if " " in start else ""
    if not (status.isascii() and status.isdigit() and len(status) == 3):
        raise BadInput("file", f"has the status line {start[:60]!r}, which has no status of three digits")
    pairs = [line.partition(":") for line in lines]
    return _answer(int(status), tuple((name.strip().lower(), value.strip()) for name, _, value in pairs), body.encode())
