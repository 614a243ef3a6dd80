"""
Log lines of the gate, one JSON object each, written by the control process from the journal's rows.

Each line of a call has `request_id`, of an attempt also `key_id` (essay A: in every log line). Floods are limited per kind
of line; what was left out is told when the flood is over, so that silence is never taken for peace.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TextIO

import structlog

from swarmgate.stores.journal import rows
from swarmgate.stores.journal.in_force import AT_START
from swarmgate.telemetry.alerts import Notice

PER_SECOND: Final = 50  # lines of one kind; bursts of ten seconds' worth
BURST: Final = 500
_LEFT_OUT: Final = frozenset({"seq", "at_ms", "charges"})
Line = tuple[str, dict[str, Any]]


def lines(row: rows.Row) -> Iterator[Line]:
    """
    The lines that a row is worth: (event, fields); empty values are left out, and limits that only go on.

    Whatever tells of a call has its `request_id` and a `key_id`, which is empty where it had no key.
    """
    made = _LINES.get(type(row))
    if isinstance(row, rows.Revision) and (row.author, row.reason) == AT_START:
        made = None
    if made is not None:
        event, fields = made(row)
        told = {name: value for name, value in fields.items() if value not in ("", (), 0)}
        if "request_id" in told:
            told.setdefault("key_id", "")
        yield event, told


def _event_of(row: rows.Note) -> str:
    return "answered" if row.kind == "ok" else "attempt_failed"


def _note(row: rows.Note) -> Line:
    event = _event_of(row)
    told = {"request_id": row.call, "key_id": row.key, "attempt": row.attempt, "kind": row.kind, "reason": row.reason}
    told |= {"status": row.status, "target": row.target, "model": row.model, "task_type": row.task_type}
    told |= {"team": row.team, "priority": f"P{row.priority}", "end": row.end, "queue_ms": row.queue_ms}
    told["client_request_id"] = row.client_request_id
    return event, told | {
        "took_ms": row.took_ms,
        "prompt_tokens": max(0, row.prompt_tokens),  # below 0 nobody said, and that is no number to add up
        "output_tokens": max(0, row.output_tokens),
        "estimated": row.estimated,
    }


def _end(row: rows.End) -> Line:
    told = {"request_id": row.call, "reason": row.reason, "attempts": row.attempts, "target": row.target}
    told |= {"model": row.model, "agent": row.agent, "goal": row.goal, "step": row.step, "task_type": row.task_type}
    told |= {"priority": f"P{row.priority}", "team": row.team, "position": row.position, "depth": row.depth}
    told["client_request_id"] = row.client_request_id
    back_ms = max(0, row.not_before_ms - row.at_ms) if row.not_before_ms else 0
    return row.end, told | {"not_before_in_ms": back_ms, "blocked": tuple(one.budget for one in row.blocked)}


def _plain(event: str) -> Callable[[Any], Line]:
    """Every field of the row, its call as `request_id` and its key as `key_id`."""

    def made(row: Any) -> Line:
        told = {name: getattr(row, name) for name in row.__struct_fields__ if name not in _LEFT_OUT}
        return event, {{"call": "request_id", "key": "key_id"}.get(name, name): value for name, value in told.items()}

    return made


_LINES: Final[dict[type, Callable[[Any], Line]]] = {
    rows.Boot: _plain("gate_began"),
    rows.Stop: _plain("gate_stopped"),
    rows.Note: _note,
    rows.End: _end,
    rows.Unconnected: _plain("unconnected"),
    rows.Revision: _plain("limit_revised"),
    rows.CeilingSet: _plain("ceiling_set"),
    rows.KeyEvent: _plain("key_event"),
    rows.LostToken: _plain("token_lost"),
    rows.ClockStep: _plain("clock_stepped"),
    rows.Gap: _plain("rows_not_recorded"),
}


class Log:
    """
    Writes lines to a stream; time is that of the rows.

    On a terminal single calls are not told: a person there wants to see what is wrong, and alerts say it.
    """

    def __init__(self, stream: TextIO, per_second: int = PER_SECOND, burst: int = BURST) -> None:
        self._calls = not stream.isatty()
        self._per_second, self._burst = per_second, burst
        self._fill: dict[str, tuple[int, int, int]] = {}  # by event: thousandths of a line left, as of, left out
        self._write = structlog.wrap_logger(
            structlog.PrintLogger(stream),
            processors=[structlog.processors.JSONRenderer()],
            cache_logger_on_first_use=True,
        )

    def hear(self, batch: Iterable[rows.Row]) -> None:
        """Write what rows are worth."""
        for row in batch:
            if isinstance(row, rows.Note | rows.End):
                if not self._calls:
                    continue
                event = row.end if isinstance(row, rows.End) else _event_of(row)
                if self._is_flood(event, row.at_ms):
                    continue  # before its line is made: in a flood most are left out
            for event, fields in lines(row):
                self._write_line(event, row.at_ms, fields)

    def notice(self, notice: Notice) -> None:
        """An alert begins or ends; these are never left out."""
        event = "alert" if notice.begins else "alert_over"
        self._write.msg(event, at_ms=notice.at_ms, alert=notice.alert, subject=notice.subject, text=notice.text)

    def tell(self, event: str, at_ms: int, **fields: Any) -> None:
        """One line, unless too many of its kind were written lately."""
        if not self._is_flood(event, at_ms):
            self._write_line(event, at_ms, fields)

    def _is_flood(self, event: str, at_ms: int) -> bool:
        """Whether too many lines of this kind were written lately; then one more is left out."""
        full = self._burst * 1_000
        left, since_ms, omitted = self._fill.get(event, (full, at_ms, 0))
        left = min(full, left + max(0, at_ms - since_ms) * self._per_second)
        is_flood = left < 1_000
        self._fill[event] = (left, max(at_ms, since_ms), omitted + is_flood)
        return is_flood

    def _write_line(self, event: str, at_ms: int, fields: dict[str, Any]) -> None:
        left, since_ms, omitted = self._fill.get(event, (self._burst * 1_000, at_ms, 0))
        self._fill[event] = (left - 1_000, since_ms, 0)
        if omitted:
            fields["left_out_before"] = omitted
        self._write.msg(event, at_ms=at_ms, **fields)
