"""
What the gate itself said, told by `explain` in the gate's words: no provider's rule fits it.

An answer is the gate's own where Proxy-Status (RFC 9209) names it and no status that it received, or where a body alone holds a
code of the closed list of reasons.
"""

from typing import Any, Final

import msgspec

from swarmgate.core.outcome import Ejects, Kind, Outcome, Verdict
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.gate.understanding import UNTOLD, Answer, Understood
from swarmgate.providers.rates import Reading
from swarmgate.providers.usage import Tokens

NAME: Final = "swarmgate"
AGAIN_MS: Final = 1_000
_MEANS: Final = {  # by whose fault it is, which a reason's code begins with; the gate's own trouble passes
    "caller": (Verdict.REFUSE, Kind.CALLER_ERROR, None),
    "policy": (Verdict.REFUSE, Kind.CALLER_ERROR, None),
    "target": (Verdict.FAILED, Kind.SERVER_ERROR, None),
    "gate": (Verdict.RETRY, Kind.SERVER_ERROR, AGAIN_MS),
}


def own_answer(answer: Answer) -> Understood | None:
    """What it says, if it is the gate's own; None = a target's, or nobody's."""
    status = dict(answer.headers).get("proxy-status", "").strip()
    is_named = status.partition(";")[0].strip() == NAME
    if is_named and "received-status" in status:
        return None
    error = _error(answer.body)
    code = error.get("code")
    if code not in list(Reason) or not (is_named or answer.status == UNTOLD):
        return None
    reason, deferral = Reason(code), error.get("deferral")
    said = error.get("message") or error.get("detail") or ""
    if isinstance(deferral, dict):
        return _deferred(answer, reason, said, deferral)
    verdict, kind, wait_ms = _MEANS[reason.partition("_")[0]]
    words = SENTENCES[reason] + _tried(error.get("attempts"))
    return _understood(answer, _outcome(verdict, kind), words, said, wait_ms, ())


def _deferred(answer: Answer, reason: Reason, said: str, deferral: dict[str, Any]) -> Understood:
    blocking = [one for one in deferral.get("blocking") or () if isinstance(one, dict)]
    wait_ms = _whole(deferral.get("not_before_ms"))
    wait_ms = _whole(deferral.get("retry_after_ms")) if wait_ms is None else wait_ms
    held = ", ".join(str(one.get("budget")) for one in blocking)
    readings = tuple(
        Reading(str(one.get("budget")), _whole(one.get("limit")), _whole(one.get("remaining")), wait_ms)
        for one in blocking
    )
    words = f"The gate's own deferral, not a provider's. {SENTENCES[reason]}{held and f' Held up by: {held}.'}"
    return _understood(answer, _outcome(Verdict.WAIT, Kind.RATE), words, said, wait_ms, readings)


def _tried(attempts: object) -> str:
    """The attempts that the error lists."""
    listed = [one for one in attempts if isinstance(one, dict)] if isinstance(attempts, list) else []
    told = [f"{one.get('target')}/{one.get('model') or '*'}: {one.get('reason')}" for one in listed]
    return f" Tried: {', '.join(told)}." if told else ""


def _error(body: bytes) -> dict[str, Any]:
    """The object that holds the code: an SDK's `error`, or the problem itself (RFC 9457)."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    error = said.get("error", said) if isinstance(said, dict) else None
    return error if isinstance(error, dict) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _outcome(verdict: Verdict, kind: Kind) -> Outcome:
    return Outcome(kind, verdict, Ejects.NOTHING, breaks=False, eject_ms=None, hint_ms=None)


def _understood(
    answer: Answer, outcome: Outcome, reason: str, said: str, wait_ms: int | None, readings: tuple[Reading, ...]
) -> Understood:
    first = readings[0] if readings else None
    return Understood(NAME, answer.status or None, outcome, reason, said, wait_ms, first, readings, Tokens())
