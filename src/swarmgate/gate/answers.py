"""
What a caller is told when the target's own answer is not what it gets: status, fields, and an error in its own form.

Pure functions; deferrals have a file of their own. `Proxy-Status` (RFC 9209) tells our errors from the target's.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from swarmgate.core.commands import End
from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.core.record import Call
from swarmgate.core.rungs import Tried, untried
from swarmgate.core.target_errors import BadTarget
from swarmgate.gate.identity import Unattributed
from swarmgate.gate.served import own_id
from swarmgate.gate.shapes import OPENAI, Said, Shape
from swarmgate.http1.head import Header
from swarmgate.http1.refusal_id import FIELD, refusal_id
from swarmgate.http1.refusals import BadHead

JSON: Final = (b"content-type", b"application/json")
STAY: Final = (b"x-should-retry", b"false")  # the gate has repeated what may be repeated
LONGEST_NAME: Final = 80

_DENIED, _BAD, _OWN = "http_request_denied", "http_request_error", "proxy_internal_error"  # RFC 9209 2.3
_TOLD: Mapping[Reason, tuple[int, str]] = {
    Reason.CALLER_BAD_REQUEST: (400, _BAD),
    Reason.CALLER_KEY_MISSING: (401, _DENIED),
    Reason.CALLER_KEY_REFUSED: (401, _DENIED),
    Reason.CALLER_KEY_THROTTLED: (429, _DENIED),
    Reason.CALLER_IDENTITY_MISSING: (400, _DENIED),
    Reason.CALLER_UNKNOWN_MODEL: (404, _BAD),
    Reason.CALLER_UNKNOWN_CALL: (404, _BAD),
    Reason.CALLER_UNKNOWN_PATH: (404, _BAD),
    Reason.CALLER_METHOD: (405, _BAD),
    Reason.CALLER_ENCODING: (415, _BAD),
    Reason.CALLER_OTHER_SITE: (403, _DENIED),
    Reason.CALLER_UPGRADE: (501, "http_upgrade_failed"),
    Reason.CALLER_TOO_LARGE: (413, _BAD),
    Reason.CALLER_WRITE_IN_FLIGHT: (409, _DENIED),
    Reason.CALLER_WRITE_DONE: (409, _DENIED),
    Reason.CALLER_WRITE_MISMATCH: (422, _BAD),
    Reason.CALLER_DEADLINE: (504, "http_response_timeout"),
    Reason.POLICY_KEY_SCOPE: (403, _DENIED),
    Reason.POLICY_SHARED_ACCOUNT: (403, _DENIED),
    Reason.POLICY_PRICE_UNKNOWN: (403, _DENIED),
    Reason.POLICY_LARGER_THAN_LIMIT: (413, _DENIED),
    Reason.POLICY_CONTEXT_CEILING: (413, _DENIED),
    Reason.CALLER_EARLY_BYTES: (400, _BAD),
    Reason.POLICY_KEYS_OUT: (503, "destination_unavailable"),
    Reason.POLICY_HOST: (403, _DENIED),
    Reason.POLICY_PORT: (403, _DENIED),
    Reason.POLICY_ADDRESS: (403, "destination_ip_prohibited"),
    Reason.POLICY_TUNNEL_UNMETERED: (403, _DENIED),
    Reason.POLICY_REDIRECTS: (508, _DENIED),
    Reason.POLICY_DOWNGRADE: (403, _DENIED),
    Reason.POLICY_OTHER_DIALECT: (400, _DENIED),
    Reason.POLICY_WINDOW_TOO_SMALL: (413, _DENIED),
    Reason.TARGET_REQUEST_TOO_LARGE: (413, _DENIED),
    Reason.TARGET_SLOW: (504, "http_response_timeout"),
    Reason.TARGET_CUT: (502, "http_response_incomplete"),
    Reason.TARGET_ENDLESS: (502, "http_response_body_size"),
    Reason.TARGET_NO_SUCH_NAME: (502, "dns_error"),
    Reason.TARGET_UNREACHABLE: (502, "destination_unavailable"),
    Reason.TARGET_TLS: (502, "tls_certificate_error"),
    **{reason: (503, _OWN) for reason in Reason if reason.startswith("gate_store_")},
    Reason.GATE_RECORDS_LOST: (503, _OWN),
    Reason.GATE_STOPPING: (503, _OWN),
    Reason.GATE_BUSY: (503, "connection_limit_reached"),
    Reason.GATE_LOOP: (508, "proxy_loop_detected"),
    Reason.GATE_BUG: (500, _OWN),
}
_OURS: Final = b'swarmgate; error=%b; details="%b"'
_TOO_SLOW: Final = 408
_SENT_ENOUGH: Final = frozenset({End.DEAD_LETTERED, End.DEFERRED})  # else no further send would have been made
_STATUS: Final = 502  # of a reason that has no row


class Reply(NamedTuple):
    """One whole answer of ours."""

    status: int
    headers: list[Header]
    body: bytes


def status_of(reason: Reason) -> int:
    """The status with which a reason is told."""
    return _TOLD.get(reason, (_STATUS, ""))[0]


def refusal(reason: Reason, detail: str = "", param: str | None = None, shape: Shape = OPENAI, call: str = "") -> Reply:
    """Why nothing was sent, or nothing came back; `call` is its id, where one was begun."""
    said = Said(status_of(reason), reason.value, _message(reason, detail), param, {}, call or refusal_id())
    return _reply(reason, said, shape)


def bad_input(bad: BadInput, shape: Shape = OPENAI) -> Reply:
    """What the caller said cannot be taken as it is, or says too little of who calls."""
    reason = Reason.CALLER_IDENTITY_MISSING if isinstance(bad, Unattributed) else Reason.CALLER_BAD_REQUEST
    return refusal(reason, f"{bad}.", bad.field, shape)


def named() -> Header:
    """The name of an answer that is no refusal and belongs to no call."""
    return (FIELD, refusal_id().encode())


def broken(bad: BadHead, shape: Shape) -> Reply:
    """What is no request (http1/refusals.py); what was too slow may be sent again."""
    code = f"caller_{bad.reason}"
    said = Said(bad.status, code, str(bad), bad.field, request_id=refusal_id())
    ours = _OURS % (_BAD.encode(), code.encode())
    again = () if bad.status == _TOO_SLOW else (STAY,)
    return Reply(bad.status, [*_fields(ours, said, shape), *again], shape.body(said))


def bad_target(bad: BadTarget, shape: Shape) -> Reply:
    """A URL that is refused before anything is resolved; its words never repeat the URL."""
    said = Said(400, bad.reason, f"The {bad}.", bad.field, request_id=refusal_id())
    return _reply(Reason.CALLER_BAD_REQUEST, said, shape)


def too_long(most_bytes: int, shape: Shape = OPENAI) -> Reply:
    """A body beyond what the gate holds."""
    return refusal(Reason.CALLER_TOO_LARGE, f"At most {most_bytes} bytes are taken.", shape=shape)


def ended_said(call: Call, end: End, reason: Reason, shape: Shape = OPENAI) -> Said:
    """
    What is said of a call that ended without an answer of its target that can be shown.

    Where no attempt found room at its provider, that has a status of its own, on which an SDK raises what it knows for it.
    """
    target = call.rungs[call.rung].target
    detail = f"Target: {target}; sends: {call.attempt}; end: {end.value}."
    rest = untried(call) if end in _SENT_ENOUGH else ()
    if rest:
        detail = f"{detail} Rungs below it that were not tried: {len(rest)}, since a call is sent at most four times."
    if reason is Reason.POLICY_KEYS_OUT:  # where time brings one back the call is deferred, and told when
        detail = f"No time brings one back: a person must look at them, then `swarmgate resume {target} --reason WHY`. {detail}"
    is_full = reason is Reason.TARGET_CAPACITY and all(one.reason is reason for one in call.trail if one.ms >= 0)
    status = shape.overloaded if is_full else status_of(reason)
    return Said(status, reason.value, _message(reason, detail), None, trail(call), call.id)


def ended(call: Call, end: End, reason: Reason, shape: Shape = OPENAI) -> Reply:
    """The same as a whole answer."""
    reply = _reply(reason, ended_said(call, end, reason, shape), shape)
    reply.headers.extend(own_id(call))
    return reply


def proxy_status(reason: Reason) -> bytes:
    """The field's value for an error of ours."""
    return _OURS % (_TOLD.get(reason, (0, _DENIED))[1].encode(), reason.value.encode())


def theirs(status: int) -> Header:
    """The field of an error that the target itself answered with."""
    return (b"proxy-status", b"swarmgate; received-status=%d" % status)


def nearest_models(model: str, names: Sequence[str]) -> str:
    """Half a sentence for a model that no route has."""
    shown = model[:LONGEST_NAME]
    return f"{shown!r} is not one of: {', '.join(names[:8])}." if names else f"{shown!r} has no route."


def trail(call: Call) -> dict[str, object]:
    """Every attempt of a call that failed, and every rung that was passed over or never reached, if there were any."""
    if not call.trail:
        return {}
    rest = untried(call) if call.end in _SENT_ENOUGH else ()
    told = [
        {
            "rung": one.rung,
            "target": call.rungs[one.rung].target,
            "model": call.rungs[one.rung].model or call.model or None,
            "key": one.key or None,
            "status": one.status or None,
            "reason": one.reason.value,
            "ms": one.ms if one.ms >= 0 else None,
        }
        for one in (*call.trail, *[Tried(index, Reason.POLICY_SENDS_USED_UP) for index in rest])
    ]
    return {"attempts": told}


def with_trail(body: bytes, call: Call) -> bytes:
    """A target's own error, with every attempt before it listed beside its words; what is no such object stays as it is."""
    if len(call.trail) < 2:
        return body
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict):
        return body
    return msgspec.json.encode(said | {"error": error | trail(call)})


def _reply(reason: Reason, said: Said, shape: Shape) -> Reply:
    return Reply(said.status, [*_fields(proxy_status(reason), said, shape), STAY], shape.body(said))


def _fields(ours: bytes, said: Said, shape: Shape) -> list[Header]:
    name = (FIELD, said.request_id.encode())
    return [(b"content-type", shape.media_type), (b"proxy-status", ours), name]


def _message(reason: Reason, detail: str) -> str:
    return f"{SENTENCES[reason]} {detail}".strip()
