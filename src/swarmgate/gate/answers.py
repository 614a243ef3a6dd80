"""
What a caller is told when the target's own answer is not what it gets, in the shape that the SDKs read.

Pure functions from a call and how it ended to (status, headers, body). A deferral says when to come back, and whether
an SDK may do so by itself (design 5: Deferral). Instants are told as milliseconds from now: our clock is nobody else's.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from swarmgate.core.answers import Blocker, BlockKind, Denied
from swarmgate.core.backoff import jitter
from swarmgate.core.commands import End
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.core.record import Call
from swarmgate.core.ticket import kept, sealed
from swarmgate.http1.head import Header

JSON = (b"content-type", b"application/json")
STAY = (b"x-should-retry", b"false")  # the gate has repeated what may be repeated
SDK_WAITS_MS = 20_000
SDK_REPEATS = 2

_STATUS = {
    Reason.CALLER_BAD_REQUEST: 400,
    Reason.CALLER_UNKNOWN_MODEL: 404,
    Reason.CALLER_UNKNOWN_CALL: 404,
    Reason.CALLER_UNKNOWN_PATH: 404,
    Reason.CALLER_METHOD: 405,
    Reason.CALLER_ENCODING: 415,
    Reason.CALLER_UPGRADE: 501,
    Reason.CALLER_TOO_LARGE: 413,
    Reason.CALLER_DEADLINE: 504,
    Reason.POLICY_LARGER_THAN_LIMIT: 413,
    Reason.POLICY_KEYS_OUT: 503,
    Reason.TARGET_REQUEST_TOO_LARGE: 413,
    Reason.TARGET_SLOW: 504,
    Reason.GATE_STORE_LOST: 503,
    Reason.GATE_STOPPING: 503,
    Reason.GATE_BUSY: 503,
    Reason.GATE_LOOP: 508,
    Reason.GATE_BUG: 500,
}
_TYPES = {400: "invalid_request_error", 404: "invalid_request_error", 413: "invalid_request_error"}


class Reply(NamedTuple):
    """One whole answer of ours."""

    status: int
    headers: list[Header]
    body: bytes


def error(status: int, code: str, message: str, param: str | None = None) -> Reply:
    """An error in OpenAI's shape; Anthropic's SDK reads the same fields."""
    kind = _TYPES.get(status, "gate_error" if status >= 500 else "invalid_request_error")
    return Reply(status, [JSON, STAY], _body({"message": message, "type": kind, "param": param, "code": code}))


def refusal(reason: Reason, detail: str = "", param: str | None = None) -> Reply:
    """Why nothing was sent, or nothing came back."""
    message = f"{SENTENCES[reason]} {detail}".strip()
    return error(_STATUS.get(reason, 502), reason.value, message, param)


def too_long(most_bytes: int) -> Reply:
    """A body beyond what the gate holds."""
    return error(413, Reason.CALLER_BAD_REQUEST.value, f"The body is longer than {most_bytes} bytes; nothing was sent.")


def ended(call: Call, end: End, reason: Reason) -> Reply:
    """A call that ended without an answer of its target."""
    reply = refusal(reason, f"Target: {call.rungs[call.rung].target}; sends: {call.attempt}; end: {end.value}.")
    return reply._replace(headers=[*reply.headers, (b"x-request-id", call.id.encode())])


def deferral(call: Call, denied: Denied, reason: Reason, now_ms: int, key: bytes, sdk_repeats: int = 0) -> Reply:
    """
    Not now: what blocks, when to come back, and the place that is kept until then, sealed with `key`.

    `sdk_repeats` is how often the caller's SDK has tried already.
    """
    wait_ms = max(0, denied.not_before_ms - denied.now_ms)
    stagger_ms = jitter(call.id, 0) * max(250, wait_ms // 5) >> 32
    again_ms = wait_ms + stagger_ms
    may_repeat = wait_ms <= SDK_WAITS_MS and sdk_repeats < SDK_REPEATS
    detail = {
        "id": call.id,
        "target": call.rungs[call.rung].target,
        "blocking": [_blocking(blocker) for blocker in denied.blockers],
        "not_before_ms": wait_ms,
        "certain_by_ms": max(0, denied.certain_ms - denied.now_ms),
        "retry_after_ms": again_ms,
        "reason": reason.value,
        "priority": f"P{call.rank}",
        "queue": {"position": denied.position, "depth": denied.depth},
        "waited_ms": now_ms - call.arrived_ms,
        "ticket": sealed(kept(call.ticket, denied, now_ms), key),
        "alternatives": [rung.target for rung in call.rungs[call.rung + 1 :]],
    }
    body = _body(
        {
            "message": f"{SENTENCES[reason]} Come back in {again_ms} ms.",
            "type": "deferred",
            "param": None,
            "code": reason.value,
            "deferral": detail,
        }
    )
    headers = [
        JSON,
        (b"x-request-id", call.id.encode()),
        (b"retry-after", b"%d" % -(-again_ms // 1_000)),
        (b"x-should-retry", b"true" if may_repeat else b"false"),
    ]
    return Reply(429, headers, body)


def error_event(reason: Reason) -> bytes:
    """What a stream that cannot go on says last; SDKs raise on it, and no `[DONE]` follows."""
    said = _body({"message": SENTENCES[reason], "type": "gate_error", "param": None, "code": reason.value})
    return b"event: error\ndata: %b\n\n" % said


def nearest_models(model: str, names: Sequence[str]) -> str:
    """Half a sentence for a model that no route has."""
    return f"{model[:80]!r} is not one of: {', '.join(names[:8])}." if names else f"{model[:80]!r} has no route."


def _blocking(blocker: Blocker) -> dict[str, object]:
    return {
        "budget": blocker.budget,
        "kind": "time" if blocker.kind is BlockKind.TIME else "event",
        "revision": blocker.revision,
        "limit": blocker.limit,
        "window_ms": blocker.window_ms,
        "remaining": blocker.remaining,
    }


def _body(said: dict[str, object]) -> bytes:
    return msgspec.json.encode({"error": said})
