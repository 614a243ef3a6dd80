"""
How much reached a target under each limit that was in force, and whether that was within it.

Sends are told in order of time. For each revision of a limit the most in any window of its length is found exactly: the same
question that the limit asks of the target (design 2: P2). Requests count when they leave, tokens as the target counted them,
concurrency from leaving to the end.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from swarmgate.config.quota import shown, shown_unit
from swarmgate.core.compiler import fresh_ms
from swarmgate.core.lesson import RATE
from swarmgate.stores.sql.reading import LIMIT_KINDS, Span

FEW_PERMILLE: Final = 5  # of what was sent; fewer refusals than that are others' traffic, or the odd one
MOST_WINDOWS: Final = 120  # in a table or a drawing


class LimitVerdict(StrEnum):
    """What a limit and the traffic under it say of each other, the worst last."""

    NONE = "no budget was known"
    UNUSED = "nothing was sent under it"
    RIGHT = "kept a right budget"
    WRONG = "kept a wrong budget"
    BROKE = "broke the budget"


class Sent(NamedTuple):
    """One send; `units` of each kind of limit, `refused` = the target said that it was too much."""

    sent_ms: int
    ended_ms: int
    target: str
    key: str
    tokens: int
    input_tokens: int
    output_tokens: int
    refused: bool

    def units(self, unit: str) -> int:
        """What it took of a limit of this unit."""
        counted = {"tokens": self.tokens, "input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        return counted.get(unit, 1)


_WITHOUT_WINDOW: Final = "concurrent"


class Ruling(NamedTuple):
    """
    One revision of a limit, the time in which it held, and what happened under it.

    `allowed` in any window; `takers` are targets and keys that take from it.
    """

    budget: str
    revision: int
    unit: str
    amount: int
    window_ms: int
    allowed: int
    span: Span
    author: str
    reason: str
    paused: bool
    sent: int
    most: int
    most_at_ms: int
    refused: int
    verdict: LimitVerdict
    takers: frozenset[tuple[str, str]] = frozenset()

    @property
    def limit(self) -> str:
        """As people write it."""
        window = f" per {self.window_ms / 1_000:g}s" if self.window_ms else ""
        return f"{shown(self.amount, self.unit)} {shown_unit(self.unit)}{window}"


class _Count:
    """The most in any window while one revision held."""

    def __init__(self, row: Mapping[str, Any], span: Span) -> None:
        self._row = row
        self._span = span
        self._is_held = row["unit"] == _WITHOUT_WINDOW
        self._inside: deque[tuple[int, int]] = deque()  # (instant, units) in the window that ends at the newest send
        self._ends: list[int] = []
        self._now = 0
        self.sends = self.sent = self.most = self.most_at_ms = self.refused = 0

    def add(self, send: Sent) -> None:
        """A send, in order of time; those of other times, or that take nothing from it, are passed."""
        row, span = self._row, self._span
        if not span.from_ms <= send.sent_ms < span.to_ms or (send.target, send.key) not in row["takers"]:
            return
        units = send.units(row["unit"])
        self.sends += 1
        self.sent += units
        self.refused += send.refused
        if self._is_held:
            self._hold(send)
        else:
            self._slide(send.sent_ms, units)
        if self._now > self.most:
            self.most, self.most_at_ms = self._now, send.sent_ms

    def _slide(self, at_ms: int, units: int) -> None:
        """A window is half open: what left exactly one window earlier is outside."""
        self._inside.append((at_ms, units))
        self._now += units
        while self._inside[0][0] <= at_ms - self._row["window_ms"]:
            self._now -= self._inside.popleft()[1]

    def _hold(self, send: Sent) -> None:
        while self._ends and self._ends[0] <= send.sent_ms:
            heappop(self._ends)
        heappush(self._ends, max(send.ended_ms, send.sent_ms + 1))
        self._now = len(self._ends)

    def ruling(self) -> Ruling:
        """What came of it."""
        row = self._row
        return Ruling(
            row["budget"],
            row["revision"],
            row["unit"],
            row["amount"],
            row["window_ms"],
            _allowed(row),
            self._span,
            row["author"],
            row["reason"],
            row["paused"],
            self.sent,
            self.most,
            self.most_at_ms,
            self.refused,
            self._verdict(),
            frozenset(row["takers"]),
        )

    def _verdict(self) -> LimitVerdict:
        if not self.sends:
            return LimitVerdict.UNUSED
        if self.most > _allowed(self._row):
            return LimitVerdict.BROKE
        return LimitVerdict.WRONG if self.refused * 1_000 >= max(1, self.sends * FEW_PERMILLE) else LimitVerdict.RIGHT


def _allowed(row: Mapping[str, Any]) -> int:
    """
    The most that a window of this revision may hold: what its owner states.

    Nobody states what is learned of a host: that is a pace, kept with headroom 1 and in thousandths (core/lesson.py), so
    a window may hold a burst beyond it.
    """
    amount, window_ms = int(row["amount"]), row["window_ms"]
    if not row["budget"].endswith(RATE):
        return amount
    return max(amount, int(row["burst"] + row["quota"] * (window_ms + fresh_ms(window_ms)) // row["per_ms"]))


class Windows:
    """What was sent, put off and refused, by windows of equal length; at most MOST_WINDOWS of them."""

    def __init__(self, span: Span, window_ms: int) -> None:
        length_ms = max(1, span.to_ms - span.from_ms)
        windows = -(-length_ms // max(1, window_ms))
        self.each = -(-windows // MOST_WINDOWS)  # windows per row
        self.window_ms = max(1, window_ms) * self.each
        self.from_ms = span.from_ms
        self.rows = [[0, 0, 0] for _ in range(-(-length_ms // self.window_ms))]

    def begin_of(self, at_ms: int) -> int:
        """Where the window of an instant begins."""
        return at_ms - (at_ms - self.from_ms) % self.window_ms

    def add(self, at_ms: int, column: int) -> None:
        """One more: 0 = sent, 1 = refused by the target, 2 = put off by us."""
        index = (at_ms - self.from_ms) // self.window_ms
        if 0 <= index < len(self.rows):
            self.rows[index][column] += 1


def rulings(revisions: Iterable[Mapping[str, Any]], sends: Iterable[Sent], span: Span) -> list[Ruling]:
    """
    What was sent under each revision that held within the span.

    `revisions` in order of budget and policy, each with its `takers` (target, key); `sends` in order of time.
    """
    counts = [_Count(row, held) for row, held in _in_force(list(revisions), span)]
    for send in sends:
        for count in counts:
            count.add(send)
    return [count.ruling() for count in counts]


def worst(found: Iterable[Ruling]) -> LimitVerdict:
    """The verdict over several limits."""
    order = list(LimitVerdict)
    return max((ruling.verdict for ruling in found), key=order.index, default=LimitVerdict.NONE)


def read_send(row: Mapping[str, Any], free_of_cache: Collection[str] = ()) -> Sent:
    """
    A send as the ledger has it; one without an end lasted until nobody knows when.

    What a cache held counts against no limit of the targets `free_of_cache`.
    """
    sent, got = row["prompt_tokens"] or 0, row["output_tokens"] or 0
    if row["target"] in free_of_cache:
        sent = max(0, sent - (row["cached_tokens"] or 0))
    ended_ms = row["ended_ms"] if row["ended_ms"] is not None else row["sent_ms"] + 1
    return Sent(row["sent_ms"], ended_ms, row["target"], row["key"], sent + got, sent, got, row["kind"] in LIMIT_KINDS)


def _in_force(revisions: list[Mapping[str, Any]], span: Span) -> list[tuple[Mapping[str, Any], Span]]:
    """Each revision with the part of the span in which it held."""
    held = []
    ends_ms: dict[str, int] = {}  # where the revision after the one at hand begins
    for row in reversed(revisions):
        from_ms, to_ms = max(span.from_ms, row["since_ms"]), ends_ms.get(row["budget"], span.to_ms)
        ends_ms[row["budget"]] = from_ms
        if from_ms < to_ms:
            held.append((row, Span(from_ms, to_ms)))
    return held[::-1]
