"""
Who calls and why, said once and carried along: contextvars, so that tasks inherit it and threads do when told to.

Words are those that the gate reads (`x-swarmgate-*`). A trace begins with the outermost context, and each context is one
span of it (W3C Trace Context). A tracer that is at work in this process comes first.
"""

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypedDict, Unpack

_WORD = re.compile(r"[!-~]{1,200}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class Attribution(NamedTuple):
    """What the gate is told of a call; empty = not said. `ticket` is the place that a deferred call keeps."""

    agent: str = ""
    task: str = ""
    goal: str = ""
    step: str = ""
    op: str = ""
    task_type: str = ""
    priority: str = ""
    wait: str = ""
    timeout: str = ""
    effect: str = ""
    ticket: str = ""
    trace_id: str = ""
    span_id: str = ""

    def headers(self) -> dict[str, str]:
        """The header fields that say it."""
        said = {f"x-swarmgate-{name.replace('_', '-')}": value for name, value in self._asdict().items() if value}
        for name in ("x-swarmgate-trace-id", "x-swarmgate-span-id"):
            said.pop(name, None)
        trace = _of_tracer() or (f"00-{self.trace_id}-{self.span_id}-01" if self.trace_id else "")
        return said | {"traceparent": trace} if trace else said


_NOBODY = Attribution()
_current: ContextVar[Attribution] = ContextVar("swarmgate", default=_NOBODY)


def current() -> Attribution:
    """What holds here and now."""
    return _current.get()


class Words(TypedDict, total=False):
    """What may be said: `wait` and `timeout` as `20s`, `priority` as P0, P1 or P2, `traceparent` to join a trace."""

    agent: str
    task: str
    goal: str
    step: str
    op: str
    task_type: str
    priority: str
    wait: str
    timeout: str
    effect: str
    ticket: str
    traceparent: str


@contextmanager
def context(**words: Unpack[Words]) -> Iterator[Attribution]:
    """
    Inside, every call through the gate says so; what is not given holds on from the context around.

    Errors: ValueError names a word that no header can carry, TypeError one that is not known.
    """
    for name, value in words.items():
        if name not in Words.__annotations__:
            raise TypeError(f"context() knows no {name!r}; it knows {', '.join(Words.__annotations__)}")
        if not isinstance(value, str) or (value and not _WORD.fullmatch(value)):
            raise ValueError(f"{name} = {value!r:.60}: must be visible ASCII without spaces, at most 200 characters")
    around = _current.get()
    said = {name: value for name, value in words.items() if name != "traceparent"}
    trace_id = _trace_id(words.get("traceparent"), around)
    inside = Attribution(**around._asdict() | said | {"trace_id": trace_id, "span_id": secrets.token_hex(8)})
    token = _current.set(inside)
    try:
        yield inside
    finally:
        _current.reset(token)


def _trace_id(traceparent: str | None, around: Attribution) -> str:
    if traceparent is not None:
        found = _TRACEPARENT.fullmatch(traceparent)
        if found is None:
            raise ValueError(f"traceparent = {traceparent[:60]!r}: is none (W3C Trace Context 3.2)")
        return found[1]
    return around.trace_id or secrets.token_hex(16)


def _of_tracer() -> str:
    """The span of a tracer that is at work; one that nobody imported is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ""
    span = trace.get_current_span().get_span_context()
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}" if span.is_valid else ""
