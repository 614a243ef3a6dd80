"""
From rows of the journal to changes of the ledger: what belongs together is joined, priced and counted here.

An attempt is open from its intent to its note. If its gate died, the next boot finds it open and marks it `crash`; if its
note was among rows that could not be recorded, `unrecorded`. A call that ends takes its open attempts with it.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from swarmgate.control.pricing import Pricer
from swarmgate.core.price import MOST_TOKENS, NO_COUNT, flat_cost
from swarmgate.stores.journal import rows
from swarmgate.stores.sql.changes import Changes, Values
from swarmgate.stores.sql.tables import CEILING, DOUBTFUL

HOUR_MS: Final = 3_600_000
OPEN: Final = "open"
ENDED: Final = "ended"
CRASH: Final = "crash"
UNRECORDED: Final = "unrecorded"
ANSWERED: Final = "ok"


class Open:
    """What is known of attempts that have not ended; `gap_seq` is the number of the newest gap."""

    def __init__(self, intents: Iterable[rows.Intent], run: str, gap_seq: int) -> None:
        self.intents = {(intent.call, intent.attempt): intent for intent in intents}
        self.run = run
        self.gap_seq = gap_seq


class Gathering:
    """
    One batch; `open_attempts` goes on from batch to batch, and is only right once the batch is written.

    `told` are its rows as listeners want them: each note with what its intent said.
    """

    def __init__(self, open_attempts: Open, price: Pricer) -> None:
        self._open = open_attempts
        self._price = price
        self._new: set[str] = set()
        self.changes = Changes()
        self.told: list[rows.Row] = []
        self._do: dict[type, Callable[..., None]] = {
            rows.Boot: self._boot,
            rows.Stop: self._stop,
            rows.Intent: self._intent,
            rows.Note: self._note,
            rows.End: self._end,
            rows.Revision: self._revision,
            rows.CeilingSet: self._ceiling,
            rows.Way: self._way,
            rows.KeyEvent: self._key_event,
            rows.Gap: self._gap,
            rows.Unconnected: self._unconnected,
            rows.LostToken: self._lost,
            rows.ClockStep: self._clock,
        }

    def add(self, row: rows.Row) -> None:
        """One row more; kinds that the ledger does not keep are passed."""
        if isinstance(row, rows.Done):
            row = rows.noted(row, self._open.intents.get((row.call, row.attempt)))
        self.told.append(row)
        act = self._do.get(type(row))
        if act is not None:
            act(row)

    def gate_died(self, at_ms: int) -> None:
        """Whatever is open now has no end."""
        for intent in list(self._open.intents.values()):
            fate = UNRECORDED if intent.seq < self._open.gap_seq else CRASH
            cost = flat_cost(intent.flat_micro, is_answered=False)
            self._complete(intent, {"fate": fate, "kind": fate, "ended_ms": at_ms, "cost_micro": cost})
            self._count(intent, at_ms, (1, 0, 0, 0, 0, 0, int(cost is None), 0, 0))
            self._end_call(intent.call, at_ms, (fate, ""), intent.attempt)
        self._open.intents.clear()

    def trouble(self, kind: str, lines: int, seq: int, at_ms: int) -> None:
        """Lines that were no rows, near a row."""
        told = {"seq": seq, "at_ms": at_ms, "kind": kind, "call": "", "target": "", "reason": "", "detail": str(lines)}
        self.changes.events.append(told)

    def _boot(self, row: rows.Boot) -> None:
        if self._open.run and self._open.run != row.run:
            self._event(row, "crash", reason=self._open.run)
        self.gate_died(row.at_ms)
        self._open.run = row.run
        self._event(row, "boot", reason=row.run, version=row.version, pid=row.pid)

    def _stop(self, row: rows.Stop) -> None:
        self.gate_died(row.at_ms)
        self._open.run = ""
        self._event(row, "stop", reason=row.run, left=row.left)

    def _intent(self, row: rows.Intent) -> None:
        self._open.intents[row.call, row.attempt] = row
        self._call(row, attempts=row.attempt)
        self.changes.attempts[row.call, row.attempt] = {
            "call": row.call,
            "attempt": row.attempt,
            "seq": row.seq,
            "run": self._open.run,
            "target": row.target,
            "model": row.model,
            "key": row.key,
            "rung": row.rung,
            "policy": row.revision,
            "sent_ms": row.at_ms,
            "queue_ms": max(0, row.at_ms - row.arrived_ms),
            "prompt": row.prompt,
            "reserve": row.reserve,
            **_NOT_ENDED,
        }

    def _note(self, row: rows.Note) -> None:
        intent = self._open.intents.pop((row.call, row.attempt), None)
        prompt, output, cached = (_tokens(told) for told in (row.prompt_tokens, row.output_tokens, row.cached_tokens))
        most = max(row.prompt_tokens, row.output_tokens, row.cached_tokens)
        if most > MOST_TOKENS:
            self._event(row, DOUBTFUL, row.call, row.target, "usage", told=most, counted=MOST_TOKENS)
        elif NO_COUNT in {row.prompt_tokens, row.output_tokens}:
            self._event(
                row, DOUBTFUL, row.call, row.target, "usage", told="no number, or more than the call can have used"
            )
        cost = flat_cost(row.flat_micro, is_answered=row.kind == ANSWERED)
        if cost is None and prompt is not None and output is not None:
            cost = self._price(row.target, row.model, prompt, output, cached or 0, row.at_ms)
        if intent is not None:
            used = {"prompt_tokens": prompt, "output_tokens": output, "cached_tokens": cached, "cost_micro": cost}
            self._complete(intent, _ended(row) | used)
            spent = (prompt or 0, output or 0, cached or 0, cost or 0, int(cost is None and row.sent))
            guessed = ((prompt or 0) + (output or 0), cost or 0) if row.estimated else (0, 0)
            self._count(intent, row.at_ms, (int(row.sent), int(row.kind == ANSWERED), *spent, *guessed))
        if row.end:
            self._end_call(row.call, row.at_ms, (row.end, row.end_reason), row.attempt)
        if row.out_ms:
            until_ms = 0 if row.out_ms < 0 else row.at_ms + row.out_ms
            self._key(
                row.seq, row.at_ms, (row.target, row.key, "dead" if row.out_ms < 0 else "ejected"), row.reason, until_ms
            )

    def _end(self, row: rows.End) -> None:
        self._call(row, attempts=row.attempts)
        self._end_call(row.call, row.at_ms, (row.end, row.reason), row.attempts)
        if row.end == "deferred":
            self.changes.deferrals.append(
                {
                    "seq": row.seq,
                    "at_ms": row.at_ms,
                    "call": row.call,
                    "target": row.target,
                    "model": row.model,
                    "reason": row.reason,
                    "waited_ms": max(0, row.at_ms - row.arrived_ms),
                    "not_before_ms": row.not_before_ms,
                    "certain_ms": row.certain_ms,
                    "position": row.position,
                    "depth": row.depth,
                    "budget": row.blocked[0].budget if row.blocked else "",
                    "blocked": msgspec.json.encode(row.blocked).decode(),
                }
            )

    def _revision(self, row: rows.Revision) -> None:
        self.changes.revisions.append(
            {
                "budget": row.budget,
                "revision": row.revision,
                "policy": row.policy,
                "target": row.target,
                "key": row.key,
                "unit": row.unit,
                "amount": row.amount,
                "window_ms": row.window_ms,
                "kind": row.kind,
                "burst": row.burst,
                "quota": row.quota,
                "per_ms": row.per_ms,
                "paused": row.paused,
                "author": row.author,
                "reason": row.reason,
                "since_ms": row.since_ms or row.at_ms,
            }
        )

    def _ceiling(self, row: rows.CeilingSet) -> None:
        why = {"author": row.author, "because": row.reason}
        self._event(row, CEILING, reason=row.task_type, tokens=row.tokens, over=row.over, **why)

    def _way(self, row: rows.Way) -> None:
        self.changes.ways += [{"target": row.target, "key": row.key, "budget": name} for name in row.budgets]

    def _key_event(self, row: rows.KeyEvent) -> None:
        self._key(row.seq, row.at_ms, (row.target, row.key, row.what), row.reason, row.until_ms)

    def _gap(self, row: rows.Gap) -> None:
        self._open.gap_seq = row.seq
        self._event(row, "gap", reason=row.reason, rows=row.rows, since_ms=row.since_ms)

    def _unconnected(self, row: rows.Unconnected) -> None:
        self._event(row, "unconnected", row.call, row.target, row.reason, model=row.model, outcome=row.kind)

    def _lost(self, row: rows.LostToken) -> None:
        self._event(row, "lost", row.call, row.target, row.reason)

    def _clock(self, row: rows.ClockStep) -> None:
        self._event(row, "clock", wall_ms=row.wall_ms, step_ms=row.step_ms)

    def _call(self, row: rows.Intent | rows.End, attempts: int) -> None:
        if row.call in self.changes.calls:
            return
        if attempts == isinstance(row, rows.Intent):  # its first attempt, or none: the ledger does not have it yet
            self._new.add(row.call)
        self.changes.calls[row.call] = {
            "id": row.call,
            "arrived_ms": row.arrived_ms,
            "ended_ms": None,
            "end": "",
            "reason": "",
            "attempts": attempts,
            "agent": row.agent,
            "task": row.task,
            "goal": row.goal,
            "step": row.step,
            "operation": row.operation,
            "task_type": row.task_type,
            "team": row.team,
            "priority": row.priority,
            "target": row.target,
            "model": row.model,
            "effect": row.effect if isinstance(row, rows.Intent) else "",
            "trace": row.trace,
            "client_request_id": row.client_request_id,
        }

    def _end_call(self, call: str, at_ms: int, how: tuple[str, str], attempts: int) -> None:
        end, reason = how
        ended = {"ended_ms": at_ms, "end": end, "reason": reason, "attempts": attempts}
        if call in self._new:
            self.changes.calls[call].update(ended)
        else:
            self.changes.call_ends.append({"b_id": call, **ended})

    def _complete(self, intent: rows.Intent, ended: Values) -> None:
        known = self.changes.attempts.get((intent.call, intent.attempt))
        if known is not None:
            known.update(ended)
        else:
            self.changes.attempt_ends.append(
                {"b_call": intent.call, "b_attempt": intent.attempt, **_NOT_ENDED, **ended}
            )

    def _count(self, intent: rows.Intent, at_ms: int, counts: tuple[int, ...]) -> None:
        """Add to what its hour has (USAGE_SUMS)."""
        key = (
            at_ms - at_ms % HOUR_MS,
            intent.team,
            intent.agent,
            intent.task,
            intent.task_type,
            intent.target,
            intent.model,
            intent.key,
        )
        sums = self.changes.usage.setdefault(key, [0] * len(counts))
        for index, count in enumerate(counts):
            sums[index] += count

    def _key(self, seq: int, at_ms: int, what: tuple[str, str, str], reason: str, until_ms: int) -> None:
        target, key, kind = what
        self.changes.key_events.append(
            {
                "seq": seq,
                "at_ms": at_ms,
                "target": target,
                "key": key,
                "what": kind,
                "reason": reason,
                "until_ms": until_ms,
            }
        )

    def _event(
        self, row: rows.Row, kind: str, call: str = "", target: str = "", reason: str = "", **detail: object
    ) -> None:
        self.changes.events.append(
            {
                "seq": row.seq,
                "at_ms": row.at_ms,
                "kind": kind,
                "call": call,
                "target": target,
                "reason": reason,
                "detail": msgspec.json.encode(detail).decode() if detail else "",
            }
        )


_NOT_ENDED: Final[Values] = {
    "fate": OPEN,
    "ended_ms": None,
    "kind": "",
    "reason": "",
    "status": 0,
    "sent": True,
    "used": None,
    "prompt_tokens": None,
    "output_tokens": None,
    "cached_tokens": None,
    "content_ms": None,
    "took_ms": None,
    "sent_bytes": 0,
    "got_bytes": 0,
    "cost_micro": None,
    "estimated": False,
}


def _ended(row: rows.Note) -> Values:
    """What an attempt came to, but for its tokens and its cost."""
    return {
        "fate": ENDED,
        "ended_ms": row.at_ms,
        "kind": row.kind,
        "reason": row.reason,
        "status": row.status,
        "sent": row.sent,
        "used": row.used if row.used >= 0 else None,
        "content_ms": row.content_ms if row.content_ms >= 0 else None,
        "took_ms": row.took_ms,
        "sent_bytes": row.sent_bytes,
        "got_bytes": row.got_bytes,
        "estimated": row.estimated,
    }


def _tokens(told: int) -> int | None:
    """What a target said, if it can be so; nobody is credited, and nobody charged for the impossible."""
    return None if told < 0 else min(told, MOST_TOKENS)
