"""
What happened in the last minutes, in slots of ten seconds: what alerts are judged by.

Counts per target and per key x model x task type, latencies as counts per bucket: a few hundred bytes a group and slot,
however much traffic there is. Groups beyond the cap are not looked at; the metrics still have them.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from swarmgate.stores.journal import rows

SLOT_MS: Final = 10_000
SLOTS: Final = 36  # the last minute, and five before it to compare with
MINUTE: Final = 6
MOST_GROUPS: Final = 2_000
SLOW_MS: Final = 8_000  # essay A: slower than this is worth another model
LATENCY_EDGES_MS: Final = tuple(
    sorted({SLOW_MS, *(int(50 * 1.25**step) for step in range(40))})
)  # to 5 min, 25 % apart
MOST_RUNNING: Final = 20_000
LIMITED: Final = frozenset({"rate", "daily", "concurrency"})
WORKED: Final = LIMITED | {
    "ok",
    "too_large",
    "caller_error",
    "bad_output",
    "address_denied",
    "deadline",
}  # all else: it fails
DEFERRED: Final = "deferred"
NAMES: Final = "policy_names"


class Who(NamedTuple):
    """What a latency is watched by (essay A): key x model x task type, at a target."""

    target: str
    key: str
    model: str
    task_type: str

    def __str__(self) -> str:
        return f"{self.target}/{self.key} {self.model} {self.task_type or '(no task type)'}"


class Sends:
    """What came of the sends of one group."""

    __slots__ = ("answered", "buckets", "failed", "limited", "longest", "sent", "tokens", "took_ms")

    def __init__(self) -> None:
        self.sent = self.answered = self.limited = self.failed = self.tokens = self.took_ms = self.longest = 0
        self.buckets: dict[int, int] = {}

    def add(self, other: "Sends") -> None:
        """Put two together."""
        self.sent += other.sent
        self.answered += other.answered
        self.limited += other.limited
        self.failed += other.failed
        self.tokens += other.tokens
        self.took_ms += other.took_ms
        self.longest = max(self.longest, other.longest)
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count

    def slower(self, than_ms: int) -> int:
        """Answers that took longer than one of the edges."""
        return sum(count for bucket, count in self.buckets.items() if bucket > LATENCY_EDGES_MS.index(than_ms))

    def p99_ms(self) -> int:
        """The upper edge of the bucket that holds the 99th percentile; 0 without answers."""
        rank, seen = -(-self.answered * 99 // 100), 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                return LATENCY_EDGES_MS[min(bucket, len(LATENCY_EDGES_MS) - 1)]
        return 0


class Ends:
    """How calls at one target ended, and which budgets deferred them."""

    __slots__ = ("blocked", "calls", "deferred")

    def __init__(self) -> None:
        self.calls = self.deferred = 0
        self.blocked: dict[str, int] = {}

    def add(self, other: "Ends") -> None:
        """Put two together."""
        self.calls += other.calls
        self.deferred += other.deferred
        for budget, count in other.blocked.items():
            self.blocked[budget] = self.blocked.get(budget, 0) + count


class _Slot:
    __slots__ = ("ends", "names", "number", "sends")

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: Counter[str] = Counter()  # that could not be looked up, by agent
        self.sends: dict[Who, Sends] = {}
        self.ends: dict[str, Ends] = {}


class Window:
    """`hear` rows in order; then sums over the newest slots, and what runs. Time is that of the rows."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], tuple[Who, int]] = {}  # since when
        self._slots: deque[_Slot] = deque([_Slot(0)], maxlen=SLOTS)

    def hear(self, batch: Iterable[rows.Row]) -> None:
        """Count attempts and ends; other rows say nothing here."""
        for row in batch:
            if isinstance(row, rows.Intent):
                if len(self._running) < MOST_RUNNING:
                    who = Who(row.target, row.key, row.model, row.task_type)
                    self._running[row.call, row.attempt] = (who, row.at_ms)
            elif isinstance(row, rows.Note):
                self._running.pop((row.call, row.attempt), None)
                self._note(row)
            elif isinstance(row, rows.Boot | rows.Gap):  # of what runs now nobody knows whether it did before
                self._running.clear()
            elif isinstance(row, rows.End):
                self._end(row)

    def pass_to(self, now_ms: int) -> None:
        """Time passes although nothing happens."""
        self._slot(now_ms)

    def _slot(self, at_ms: int) -> _Slot:
        number = at_ms // SLOT_MS
        newest = self._slots[-1].number
        for passed in range(max(newest + 1, number - SLOTS + 1), number + 1):
            self._slots.append(_Slot(passed))
        return self._slots[-1]

    def _note(self, row: rows.Note) -> None:
        slot = self._slot(row.at_ms)
        who = Who(row.target, row.key, row.model, row.task_type)
        sends = slot.sends.get(who)
        if sends is None:
            if len(slot.sends) >= MOST_GROUPS:
                return
            sends = slot.sends[who] = Sends()
        sends.sent += 1
        sends.limited += row.kind in LIMITED
        sends.failed += row.kind not in WORKED
        sends.tokens += max(0, row.prompt_tokens) + max(0, row.output_tokens)
        if row.kind == "ok":
            sends.answered += 1
            sends.took_ms += row.took_ms
            sends.longest = max(sends.longest, row.prompt_tokens)
            bucket = bisect_left(LATENCY_EDGES_MS, row.took_ms)
            sends.buckets[bucket] = sends.buckets.get(bucket, 0) + 1
        if row.end:
            self._ends(slot, row.target).calls += 1

    def _end(self, row: rows.End) -> None:
        ends = self._ends(self._slot(row.at_ms), row.target)
        ends.calls += 1
        if row.end == DEFERRED:
            ends.deferred += 1
            for one in row.blocked:
                ends.blocked[one.budget] = ends.blocked.get(one.budget, 0) + 1
        names = self._slots[-1].names
        if row.reason == NAMES and (row.agent in names or len(names) < MOST_GROUPS):
            names[row.agent] += 1

    @staticmethod
    def _ends(slot: _Slot, target: str) -> Ends:
        ends = slot.ends.get(target)
        if ends is None:
            ends = Ends()
            if len(slot.ends) < MOST_GROUPS:
                slot.ends[target] = ends
        return ends

    def overdue(self, than_ms: int, now_ms: int) -> Counter[Who]:
        """How many attempts have run for longer and are not over, per group."""
        return Counter(who for who, since_ms in self._running.values() if now_ms - since_ms > than_ms)

    def names(self, slots: int = MINUTE) -> Counter[str]:
        """How many names agents could not have looked up, over the newest slots."""
        return sum((slot.names for slot in list(self._slots)[-slots:]), Counter())

    def sends(self, slots: int = MINUTE) -> dict[Who, Sends]:
        """Sums per group over the newest slots."""
        found: dict[Who, Sends] = {}
        for slot in list(self._slots)[-slots:]:
            for who, sends in slot.sends.items():
                found.setdefault(who, Sends()).add(sends)
        return found

    def ends(self, newest: int = 0, slots: int = MINUTE) -> dict[str, Ends]:
        """Sums per target over `slots` slots, the newest of which is `newest` before the last."""
        until = len(self._slots) - newest
        found: dict[str, Ends] = {}
        for slot in list(self._slots)[max(0, until - slots) : until]:
            for target, ends in slot.ends.items():
                found.setdefault(target, Ends()).add(ends)
        return found
