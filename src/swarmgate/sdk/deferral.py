"""
Not now, as a value: what the gate answers instead of letting a call through (design 5: Deferral).

It is read from an answer's body, or from the error that an SDK made of it, whatever the shape around it.
"""

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

STATUSES = frozenset({429, 503})


class Blocking(NamedTuple):
    """One budget that did not admit the call; `kind` is `time` or `event`."""

    budget: str
    kind: str
    revision: int
    limit: int
    window_ms: int
    remaining: int


class Deferred(Exception):
    """
    The call did not fail: it used no retry and keeps its place for whoever brings `ticket` back.

    `not_before_ms` counts from the moment when this was made. If only time blocks, a repeat then is admitted unless
    somebody better came; by `certain_by_ms` whatever blocks has ended (None = nobody knows). `retry_after_ms` is the same
    instant, staggered for callers without a ticket.
    """

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.made_s = time.monotonic()
        self.id = str(said.get("id", ""))
        self.target = str(said.get("target", ""))
        self.reason = str(said.get("reason", ""))
        self.ticket = str(said.get("ticket", ""))
        self.priority = str(said.get("priority", ""))
        self.not_before_ms = _whole(said.get("not_before_ms"))
        self.retry_after_ms = _whole(said.get("retry_after_ms"))
        self.certain_by_ms = _whole(said["certain_by_ms"]) if said.get("certain_by_ms") is not None else None
        queue = said.get("queue")
        self.position, self.depth = (
            (_whole(queue.get("position")), _whole(queue.get("depth"))) if isinstance(queue, Mapping) else (0, 0)
        )
        rows = said.get("blocking")
        self.blocking = (
            tuple(_blocking(one) for one in rows if isinstance(one, Mapping)) if isinstance(rows, list) else ()
        )
        names = ", ".join(one.budget for one in self.blocking) or self.target
        super().__init__(f"{self.reason}: {names}; not before {self.not_before_ms} ms from now")

    @property
    def left_s(self) -> float:
        """Seconds from now until `not_before_ms`, never below 0."""
        return max(0.0, self.made_s + self.not_before_ms / 1_000 - time.monotonic())


def deferral_of(what: object) -> Deferred | None:
    """
    The deferral in a body, an answer of httpx or httpx2, or an error that an SDK raised; None if it is none.

    OpenAI's and Anthropic's SDKs raise their error for 429 with `response` and `body`.
    """
    if isinstance(what, Deferred):
        return what
    if isinstance(what, bytes | str):
        try:
            what = json.loads(what)
        except ValueError:
            return None
    if isinstance(what, Mapping):
        return _in(what)
    if hasattr(what, "response"):
        what = what.response
    if getattr(what, "status_code", 0) in STATUSES and getattr(what, "is_stream_consumed", True):
        return deferral_of(getattr(what, "content", b""))
    return None


def _in(said: Mapping[Any, Any]) -> Deferred | None:
    """In OpenAI's and Anthropic's shape it stands in `error`, in a problem's (RFC 9457) at the top."""
    for around in (said, said.get("error")):
        found = around.get("deferral") if isinstance(around, Mapping) else None
        if isinstance(found, Mapping):
            return Deferred(found)
    return None


def _blocking(said: Mapping[str, Any]) -> Blocking:
    return Blocking(
        str(said.get("budget", "")),
        str(said.get("kind", "")),
        *(_whole(said.get(field)) for field in ("revision", "limit", "window_ms", "remaining")),
    )


def _whole(said: object) -> int:
    return said if isinstance(said, int) and said > 0 else 0
