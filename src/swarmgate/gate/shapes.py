"""
The forms in which callers read errors: OpenAI's and Anthropic's SDKs, and RFC 9457 for everybody else.

One table per form; what is said is the same in each. In a stream that has begun the status is gone, so the form also has an
event that its SDK raises on.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

MESSAGES: Final = b"/v1/messages"
RESPONSES_PATH: Final = b"/v1/responses"
_ANTHROPIC_VERSION: Final = b"anthropic-version"
_NOTHING: Mapping[str, object] = {}


class Said(NamedTuple):
    """What an error says: `code` is one of core/reasons.py, `param` the field it is about, `more` further members."""

    status: int
    code: str
    message: str
    param: str | None = None
    more: Mapping[str, object] = _NOTHING
    request_id: str = ""


class Shape(NamedTuple):
    """One form: its media type, the body of an error, the event of an error in a stream, and the status of a provider without room."""

    media_type: bytes
    body: Callable[[Said], bytes]
    event: Callable[[Said], bytes]
    overloaded: int = 503


# https://docs.anthropic.com/en/api/errors; whatever else is below 500 is the request's fault, above it the API's.
_ANTHROPIC_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _openai_error(said: Said) -> dict[str, object]:
    """https://platform.openai.com/docs/guides/error-codes: `type`, `code`, `param` and `message` below `error`."""
    kind = "deferred" if "deferral" in said.more else "gate_error" if said.status >= 500 else "invalid_request_error"
    return {"message": said.message, "type": kind, "param": said.param, "code": said.code, **said.more}


def _openai(said: Said) -> dict[str, object]:
    return {"error": _openai_error(said)}


def _responses(said: Said) -> dict[str, object]:
    """The error event of the Responses API; `error` stands beside it, because the Python SDK raises on that."""
    event = {"type": "error", "code": said.code, "message": said.message, "param": said.param, "sequence_number": 0}
    return event | _openai(said)


def _anthropic(said: Said) -> dict[str, object]:
    usual = "api_error" if said.status >= 500 else "invalid_request_error"
    kind = _ANTHROPIC_TYPES.get(said.status, usual)
    error = {"type": kind, "message": said.message, "code": said.code, **said.more}
    return {"type": "error", "error": error, "request_id": said.request_id or None}


def _problem(said: Said) -> dict[str, object]:
    """RFC 9457 3.1; our members stand beside the standard's."""
    title = said.message.partition(". ")[0]
    problem = {"type": f"urn:swarmgate:{said.code}", "title": title, "status": said.status, "detail": said.message}
    return problem | {"code": said.code, "param": said.param, **said.more}


def _bytes_of(form: Callable[[Said], dict[str, object]]) -> Callable[[Said], bytes]:
    return lambda said: msgspec.json.encode(form(said))


def _event_of(name: bytes, form: Callable[[Said], dict[str, object]]) -> Callable[[Said], bytes]:
    return lambda said: b"%bdata: %b\n\n" % (name, msgspec.json.encode(form(said)))


_NAMED: Final = b"event: error\n"
_JSON: Final = b"application/json"
OPENAI: Final = Shape(_JSON, _bytes_of(_openai), _event_of(b"", _openai))
RESPONSES: Final = Shape(_JSON, _bytes_of(_openai), _event_of(_NAMED, _responses))
ANTHROPIC: Final = Shape(_JSON, _bytes_of(_anthropic), _event_of(_NAMED, _anthropic), overloaded=529)
PROBLEM: Final = Shape(b"application/problem+json", _bytes_of(_problem), _event_of(_NAMED, _problem))


def shape_of(path: bytes, fields: Mapping[bytes, bytes]) -> Shape:
    """The form that the SDK behind a request for `path` below `/v1/` reads."""
    if path.startswith(MESSAGES) or _ANTHROPIC_VERSION in fields:
        return ANTHROPIC
    return RESPONSES if path.startswith(RESPONSES_PATH) else OPENAI
