"""
From rows of the journal to metrics: one function per kind of row, in one table.

What only the running gate knows (levels, lines, open calls) comes as a snapshot once per scrape. The data process counts
nothing for this, so a metric more costs no call anything (design 3: two processes).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from swarmgate.core.callers import AGENT, KEY
from swarmgate.core.price import MOST_TOKENS, NO_COUNT, flat_cost
from swarmgate.stores.journal import rows
from swarmgate.telemetry import names
from swarmgate.telemetry.registry import Registry

ANSWERED: Final = "ok"
DEFERRED: Final = "deferred"
SINGLE: Final = "caps of single agents and keys"
SILENT: Final = "silent_agent"  # of alerts.py
MANY_NAMES: Final = "many_names"
_OF_AGENTS: Final = frozenset({SILENT, MANY_NAMES})
CLASSES: Final = ("P0", "P1", "P2")

# (target, model, prompt tokens, output tokens, cached tokens, instant): millionths; None where no price is known.
Pricer = Callable[[str, str, int, int, int, int], int | None]


class Metrics:
    """`hear` rows in order; `state` before a scrape; `render` it."""

    def __init__(self, price: Pricer, registry: Registry | None = None) -> None:
        self._price = price
        self.registry = registry or Registry()
        self._turned_away: dict[str, int] = {}
        self._debt_units = 0
        self._hear: dict[type, Callable[..., None]] = {
            rows.Intent: self._intent,
            rows.Note: self._note,
            rows.End: self._end,
            rows.Unconnected: lambda row: self.registry.add(names.UNCONNECTED, row.target, row.kind),
            rows.Revision: lambda row: self.registry.add(names.REVISIONS, row.target, row.author),
            rows.KeyEvent: lambda row: self.registry.add(names.AGENT_KEYS, row.what),
            rows.LostToken: lambda row: self.registry.add(names.LOST, row.target, row.reason),
            rows.ClockStep: lambda _: self.registry.add(names.CLOCK_STEPS),
            rows.Gap: lambda row: self.registry.add(names.UNRECORDED, row.reason, amount=row.rows),
        }

    def hear(self, batch: Iterable[rows.Row]) -> None:
        """Count rows; kinds that no metric is made of are passed."""
        for row in batch:
            count = self._hear.get(type(row))
            if count is not None:
                count(row)

    def _intent(self, row: rows.Intent) -> None:
        self.registry.add(names.RUNGS, row.target, row.model, str(row.rung))
        if not row.agent:
            self.registry.add(names.UNATTRIBUTED, row.target)
        if row.attempt > 1:
            self.registry.add(names.RETRIES, row.target, row.model)

    def _note(self, row: rows.Note) -> None:
        told, who = self.registry, (row.target, row.key, row.model, row.task_type)
        told.add(names.ATTEMPTS, *who, row.kind)
        told.add(names.BYTES, row.target, "sent", amount=max(0, row.sent_bytes))
        told.add(names.BYTES, row.target, "got", amount=max(0, row.got_bytes))
        if row.kind == ANSWERED:
            told.observe(names.LATENCY, *who, ms=row.took_ms)
        if row.content_ms >= 0:
            told.observe(names.CONTENT, *who, ms=row.content_ms)
        for direction, tokens in (
            ("prompt", row.prompt_tokens),
            ("cached", row.cached_tokens),
            ("output", row.output_tokens),
        ):
            if tokens > MOST_TOKENS or tokens == NO_COUNT:
                told.add(names.DOUBTFUL, row.target, row.model)
            elif tokens > 0:
                told.add(names.TOKENS, *who, direction, amount=tokens)
        if row.attempt == 1:
            told.observe(names.QUEUE, row.target, CLASSES[row.priority], ms=row.queue_ms)
        self._priced(row)
        self._key_of(row)
        if row.end:
            self._ended(row, row.end, row.end_reason)

    def _priced(self, row: rows.Note) -> None:
        flat_micro = flat_cost(row.flat_micro, is_answered=row.kind == ANSWERED)
        if flat_micro is not None:
            self._paid(row, flat_micro)
            return
        if row.prompt_tokens < 0 and row.output_tokens < 0:
            return
        prompt, output, cached = (
            min(MOST_TOKENS, max(0, one)) for one in (row.prompt_tokens, row.output_tokens, row.cached_tokens)
        )
        cost_micro = self._price(row.target, row.model, prompt, output, cached, row.at_ms)
        if cost_micro is None:
            self.registry.add(names.UNPRICED, row.target, row.model)
        else:
            self._paid(row, cost_micro)

    def _paid(self, row: rows.Note, micro: int) -> None:
        self.registry.add(names.COST, row.team, row.target, row.model, row.task_type, amount=micro)

    def _end(self, row: rows.End) -> None:
        self._ended(row, row.end, row.reason)
        if row.end == DEFERRED:
            for one in row.blocked:
                budget = SINGLE if one.budget.startswith((AGENT, KEY)) else one.budget  # its name says which
                self.registry.add(names.DEFERRALS, row.target, budget, one.kind)

    def _ended(self, row: rows.Note | rows.End, end: str, reason: str) -> None:
        self.registry.add(names.CALLS, row.target, row.model, row.task_type, CLASSES[row.priority], end)
        if reason:
            self.registry.add(names.REASONS, row.target, end, reason)

    def _key_of(self, row: rows.Note) -> None:
        """An attempt may put its key out."""
        if row.out_ms:
            self.registry.add(names.EJECTIONS, row.target, row.key, "dead" if row.out_ms < 0 else "ejected")

    def state(
        self,
        budgets: Iterable[Mapping[str, Any]],
        calls: Mapping[str, int],
        oldest_ms: Iterable[tuple[str, str, int]],
    ) -> None:
        """
        How the gate stands now.

        `budgets`: rows with budget, target, unit, state, burst, remaining {P0..P2}, backlog {P0..P2}. `calls`: open ones by state,
        `oldest_ms`: rows of target, class, and the age of the one that has waited longest.
        """
        told = self.registry
        for name in (names.UTILISATION, names.REMAINING, names.BACKLOG, names.OLDEST, names.OPEN):
            told.forget(name)
        for row in budgets:
            self._budget(row)
        for state, count in calls.items():
            told.level(names.OPEN, state, value=count)
        for target, priority, age_ms in oldest_ms:
            told.level(names.OLDEST, target, priority, value=age_ms / 1_000)

    def keys_out(self, out: Iterable[tuple[str, str, int]]) -> None:
        """Keys that are out: target, key, for how many ms still; -1 = until a person acts."""
        self.registry.forget(names.KEY_OUT)
        for target, key, left_ms in out:
            self.registry.level(names.KEY_OUT, target, key, value=-1 if left_ms < 0 else left_ms / 1_000)

    def pools(self, pools: Mapping[str, Mapping[str, int]]) -> None:
        """How often each target's pool had a connection ready since it was made, its size, and what that is made from."""
        for name in (names.REUSED, names.POOL_SIZE, names.POOL_IN_USE):
            self.registry.forget(name)
        for target, pool in pools.items():
            self.registry.level(names.REUSED, target, value=pool["reused_permille"] / 1_000)
            self.registry.level(names.POOL_SIZE, target, value=pool["size"])
            self.registry.level(names.POOL_IN_USE, target, value=pool["mean_permille"] / 1_000)

    def turned_away(self, counts: Mapping[str, int]) -> None:
        """Requests that were no call, by what they lacked, since the gate began."""
        for lacks, count in counts.items():
            self.registry.add(names.TURNED_AWAY, lacks, amount=max(0, count - self._turned_away.get(lacks, 0)))
        self._turned_away = dict(counts)

    def debt(self, units: int) -> None:
        """What calls used beyond their reservations, since the gate began."""
        self.registry.add(names.DEBT, amount=max(0, units - self._debt_units))
        self._debt_units = units

    def retries(self, left: Iterable[tuple[str, str, int]]) -> None:
        """What is left of each deployment's retry budget: target, model, sends."""
        self.registry.forget(names.RETRIES_LEFT)
        for target, model, sends in left:
            self.registry.level(names.RETRIES_LEFT, target, model, value=sends)

    def watched(self, seen: Iterable[tuple[str, int, int]]) -> None:
        """What policies that only watch have seen: policy, sends that would have passed, sends that would not."""
        self.registry.forget(names.WATCHED)
        for policy, passed, held_back in seen:
            self.registry.level(names.WATCHED, policy, "passed", value=passed)
            self.registry.level(names.WATCHED, policy, "held_back", value=held_back)

    def _budget(self, row: Mapping[str, Any]) -> None:
        where = (row["target"], row["budget"])
        used, whole = used_of(row)
        if whole:
            self.registry.level(names.UTILISATION, *where, row["unit"], value=used / whole)
        for priority in CLASSES:
            self.registry.level(names.REMAINING, *where, priority, value=row["remaining"][priority])
            self.registry.level(names.BACKLOG, *where, priority, value=row["backlog"][priority])

    def alerts(self, firing: Iterable[tuple[str, str]]) -> None:
        """Which alerts hold now: (alert, subject). Agents are counted, not named: their names are no label."""
        self.registry.forget(names.ALERTS)
        held = Counter((alert, "" if alert in _OF_AGENTS else subject) for alert, subject in firing)
        for (alert, subject), count in held.items():
            self.registry.level(names.ALERTS, alert, subject, value=count)

    def render(self) -> bytes:
        """Everything, as a scrape reads it."""
        return self.registry.render()


def used_of(row: Mapping[str, Any]) -> tuple[int, int]:
    """
    Units that are used, of those that the budget in force holds; (0, 0) = it holds none, or is paused.

    Not of the published limit: a bucket never holds all of it, so it would look used while it is untouched.
    """
    if row["state"] == "paused":
        return 0, 0
    whole = row["burst"]
    return max(0, whole - max(0, row["remaining"]["P0"])), whole
