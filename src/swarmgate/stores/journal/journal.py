"""
The journal of a running gate (ports.Journal): calls become rows, and rows stand on file before the next command runs.

So an intent is on file before its request's first byte leaves, whatever the loop does with that byte. An attempt that ends its
call is one row, not two.
"""

import os
from collections.abc import Callable, Collection
from typing import Final, Protocol

from swarmgate import __version__
from swarmgate.core.answers import BlockKind, Denied
from swarmgate.core.book import Book
from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.compiler import WAY
from swarmgate.core.effect import Effect
from swarmgate.core.outcome import Ejects, Outcome
from swarmgate.core.record import Call, Route
from swarmgate.ports import Alarms, Told
from swarmgate.stores.journal import counters, rows
from swarmgate.stores.journal.said import NONE, Parts, Said
from swarmgate.stores.journal.writer import Writer

TICK_S: Final = 1.0
MOST_WAYS: Final = 20_000
COUNTERS_EVERY: Final = 30  # seconds
CLOCK_STEP_MS: Final = 1_000
_INTENT: Final = rows.INTENT
_DONE: Final = rows.DONE
_KINDS: Final = {kind: kind.name.lower() for kind in BlockKind}
_WRITE: Final = Effect.WRITE  # an enumeration takes 0.1 us to look a member up
_NOTHING: Final = Ejects.NOTHING
_GIVEN_UP: Final = "given_up"  # the kind of an attempt that the gate itself ended

_Left = tuple[Told, Parts]  # of an attempt that runs: who sees it, and the counters that it took from


class PumpClock(Protocol):
    """The clock that the pump reads before it notes anything; a look costs 0.3 us."""

    @property
    def read_ms(self) -> int:
        """What it read."""
        ...

    def now_ms(self) -> int:
        """Milliseconds that go on evenly."""
        ...


class FileJournal:
    """
    The journal that `writer` writes; `policy` is the number that attempts carry until the next revision, `book` has the counters
    whose state is kept over a crash, `on_budget` hears of budgets (a target, an instant) before the first attempt that takes from them.

    `sync` has the disk take what was written; `soon`, where there is one, says when it has, beside the loop. `wall_ms` reads the wall clock; `run` names this life of the gate.
    """

    __slots__ = (
        "_held",
        "_left",
        "_loop",
        "_said",
        "_seconds",
        "_step_ms",
        "_tick",
        "_wall_ms",
        "_ways",
        "book",
        "clock",
        "on_budget",
        "policy",
        "run",
        "soon",
        "sync",
        "writer",
    )

    def __init__(
        self,
        loop: Alarms,
        clock: PumpClock,
        wall_ms: Callable[[], int],
        writer: Writer,
    ) -> None:
        now_ms = clock.now_ms()
        self._loop = loop
        self.clock = clock
        self._wall_ms = wall_ms
        self._step_ms = wall_ms() - now_ms
        self._left: dict[Call, _Left] = {}
        self._ways: dict[
            int, tuple[Route, Parts]
        ] = {}  # routes that were told, by identity: they keep it while they stand here
        self._held: Note | None = None  # of a call that ends with it: its end follows at once
        self.policy = 0
        self.on_budget: Callable[[str, str, int], None] = lambda *_: None
        self.book = Book()
        self._said = Said()
        self._seconds = 0
        self.run = os.urandom(6).hex()
        self.writer = writer
        self.sync: Callable[[], object] = writer.sync
        self.soon: Callable[[Callable[[], None]], object] | None = None
        self._tick = loop.call_later(TICK_S, self._every_second)
        self.add(rows.Boot(*self.next(), self.run, __version__, os.getpid(), wall_ms()))

    def intent(self, call: Call, intent: Intent) -> None:
        """The attempt is on file when this returns; a write that may happen once only goes on to the disk itself."""
        route, rung, writer = call.route, call.rungs[call.rung], self.writer
        assert route is not None
        own = rung.routes.get(route.key, route)  # without the caller's caps, which make a route of their own per call
        way = self._ways.get(id(own))
        parts = way[1] if way is not None else self._way(rung.target, own, call.sent_ms)
        caps = call.caps
        if caps is not None:
            parts += self._said.of_caps(caps.get(rung.target) or caps[ANY_TARGET], self.book.counters)
        charges = self._said.take(call, parts) if parts else NONE
        self._left[call] = call.wire, parts  # type: ignore[assignment]
        agent, task, goal, step, operation, task_type = call.step
        writer.sequence = seq = writer.sequence + 1
        writer.write(
            (
                _INTENT,
                seq,
                call.sent_ms,
                call.id,
                intent.attempt,
                agent,
                task,
                goal,
                step,
                operation,
                task_type,
                call.team,
                call.rank,
                rung.target,
                rung.model or call.model,
                route.key,
                call.rung,
                self.policy,
                call.arrived_ms,
                call.prompt,
                call.reserve,
                call.effect,
                call.trace,
                charges,
                call.client_request_id,
                call.flat_micro,
            )
        )
        if charges and self._said.is_low:
            self._tell_disk(parts)
        if call.effect is _WRITE and (call.keyed or operation):
            self.sync()

    def note(self, call: Call, note: Note) -> None:
        """How an attempt ended; if its call ends with it, that follows at once and is told in the same row."""
        if call.end is not None:
            self._held = note
        elif (left := self._left.pop(call, None)) is not None:
            self._write_note(call, note, left, "", "")
        else:
            self._unconnected(call, note)

    def end(self, call: Call, answer: Answer) -> None:
        """How the call ended."""
        note, self._held = self._held, None
        left = self._left.pop(call, None)
        if left is not None:
            given_up = note or Note(call.attempt, answer.reason, 0)  # without a note it ran until now
            self._write_note(call, given_up, left, answer.end._value_, answer.reason or "")
            return
        if note is not None:
            self._unconnected(call, note)
        self.add(_end(*self.next(), call, answer))

    def lost(self, call: Call, lose: Lose) -> None:
        """A grant of which nothing left."""
        self.add(rows.LostToken(*self.next(), call.id, call.rungs[call.rung].target, lose.reason))

    def next(self) -> tuple[int, int]:
        """The number and the instant of a row that is about to be added."""
        return self.writer.sequence + 1, self.clock.now_ms()

    def add(self, row: rows.Row) -> None:
        """A row made with `next`."""
        self.writer.append(row)

    def close(self, left: int) -> None:
        """The gate ended in order, with `left` calls given up; nothing can be noted afterwards."""
        self._tick.cancel()
        self.add(rows.Stop(*self.next(), self.run, left))
        self.writer.sync()
        self.writer.close()

    def _write_note(self, call: Call, note: Note, left: _Left, end: str, end_reason: str) -> None:
        wire, parts = left
        status, prompt, output, cached, content_at_ms, sent_bytes, got_bytes, estimated = wire.facts()
        outcome, writer = note.outcome, self.writer
        beyond = self._said.beyond(self.book, parts) if parts else NONE
        writer.sequence = seq = writer.sequence + 1
        writer.write(
            (
                _DONE,
                seq,
                self.clock.read_ms,
                call.id,
                note.attempt,
                _GIVEN_UP if outcome is None else outcome.kind,
                note.reason or "",
                status,
                note.sent,
                note.used,
                prompt,
                output,
                cached,
                content_at_ms,
                sent_bytes,
                got_bytes,
                0 if outcome is None or outcome.ejects is _NOTHING else _out_ms(outcome),
                end,
                end_reason,
                beyond,
                estimated,
            )
        )
        if beyond and self._said.is_low:
            self._tell_disk(parts)

    def _tell_disk(self, parts: Parts) -> None:
        """What counters may use before the disk knows of it: told in time, beside the loop; else now, and the attempt waits."""
        short = [tally.name for tally, _, _ in parts if tally.said > tally.until]
        if short:
            self._tell_held(short)
        elif self.soon is not None:
            low = [tally.name for tally, _, _ in parts if tally.said > tally.soon and not tally.asked]
            if low:
                row, now_ms = self.next()
                ahead, granted = self._said.ask(self.book, low, row)
                self.add(rows.Counters(row, now_ms, counters.held(self.book, low), False, ahead, self.writer.boot_id))
                self.soon(granted)

    def _tell_held(self, names: Collection[str], *, whole: bool = False) -> None:
        """What counters hold; on the disk itself where they may use more from now on."""
        ahead, is_more = self._said.tell(self.book, names)
        held, boot = counters.held(self.book, names), self.writer.boot_id
        self.add(rows.Counters(*self.next(), held, whole, ahead, boot))
        if is_more:
            self.writer.sync()

    def _way(self, target: str, route: Route, at_ms: int) -> Parts:
        """A route's first attempt: say what it takes from; what that is of counters."""
        if len(self._ways) >= MOST_WAYS:
            self._ways.clear()
        parts = self._said.parts(route, self.book.counters)
        self._ways[id(route)] = route, parts
        names = dict.fromkeys([*(demand[0] for demand in route.fixed), *route.metered, *route.inputs, *route.outputs])
        budgets = tuple(name for name in names if not name.endswith(WAY))
        for name in budgets:
            self.on_budget(name, target, at_ms)
        self.add(rows.Way(self.writer.sequence + 1, at_ms, target, route.key, budgets))
        return parts

    def _unconnected(self, call: Call, note: Note) -> None:
        rung = call.rungs[note.rung]
        kind = note.outcome.kind if note.outcome is not None else _GIVEN_UP
        self.add(
            rows.Unconnected(*self.next(), call.id, rung.target, rung.model or call.model, kind, note.reason or "")
        )

    def _every_second(self) -> None:
        self._tick = self._loop.call_later(TICK_S, self._every_second)
        now_ms = self.clock.now_ms()
        missed = self.writer.tick(now_ms)
        if missed is not None:
            self.add(rows.Gap(*self.next(), missed.rows, missed.since_ms, missed.reason))
            self._seconds = 0  # what counters took stood in the rows that are missing
        self._tell_counters()
        wall_ms = self._wall_ms()
        step_ms = wall_ms - now_ms - self._step_ms
        if abs(step_ms) > CLOCK_STEP_MS:
            self._step_ms += step_ms
            self.add(rows.ClockStep(*self.next(), wall_ms, step_ms))

    def _tell_counters(self) -> None:
        """Whole at the first second, and seldom afterwards; long answers use more while they run."""
        book = self.book
        if self._seconds % COUNTERS_EVERY:
            behind = self._said.behind(book, {tally for _, parts in self._left.values() for tally, _, _ in parts})
            if behind:
                self._tell_held(behind)
        elif book.counters:
            self._tell_held(book.counters, whole=True)
        self._seconds += 1


def _out_ms(outcome: Outcome) -> int:
    """For how long the attempt put its key out; -1 = until a person acts."""
    return -1 if outcome.eject_ms is None else outcome.eject_ms


def _end(seq: int, now_ms: int, call: Call, answer: Answer) -> rows.End:
    rung, denied = call.rungs[call.rung], answer.denied
    return rows.End(
        seq,
        now_ms,
        call.id,
        answer.end.value,
        answer.reason or "",
        call.attempt,
        *call.step,
        call.team,
        call.rank,
        rung.target,
        rung.model or call.model,
        call.arrived_ms,
        call.trace,
        *((0, 0, 0, 0, ()) if denied is None else _deferral(denied, now_ms)),
        call.client_request_id,
    )


def _deferral(denied: Denied, now_ms: int) -> tuple[int, int, int, int, tuple[rows.Blocked, ...]]:
    """When to come back by our clock, the place in line, and every budget that blocks."""
    ahead_ms = now_ms - denied.now_ms  # the store's clock is not ours
    blocked = tuple(
        rows.Blocked(one.budget, _KINDS[one.kind], one.revision, one.limit, one.window_ms, one.remaining)
        for one in denied.blockers
    )
    return denied.not_before_ms + ahead_ms, denied.certain_ms + ahead_ms, denied.position, denied.depth, blocked
