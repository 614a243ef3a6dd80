"""
What a simulated gate writes down, and what that must prove at the end (design 2: P4, P8, P12).

The journal is the real one (stores/journal) on a simulated disk. Beside it stands what was done, so that afterwards every
request at a witness must be found in a journal, unless its gate said that nothing is written, or the power went before a
sync. Nothing else is an excuse.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.effect import Effect
from swarmgate.core.record import Call
from swarmgate.lab.sim.disk import SimDisk
from swarmgate.lab.witness import Arrival
from swarmgate.ports import AttemptFacts, Journal
from swarmgate.stores.journal import rows
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.reader import Position, read
from swarmgate.stores.journal.segments import FOLDER

STATE = Path("state")
JOURNAL = STATE / FOLDER
Attempt = tuple[str, int]  # a call and the number of its send


class Unseen:
    """What is known of an attempt where nobody looks at its bytes (ports.Told)."""

    def facts(self) -> AttemptFacts:
        """Nothing."""
        return AttemptFacts()


UNSEEN = Unseen()


class Done(NamedTuple):
    """Something that the journal was told: when, whether it said that it writes, whether it is on the disk itself."""

    at_ms: int
    is_written: bool
    is_synced: bool = False


class Evidence:
    """What one gate did; `dark_ms` are the instants at which its machine lost power, `killed` its runs without an end."""

    __slots__ = ("attempts", "dark_ms", "disk", "ends", "killed")

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.attempts: dict[Attempt, Done] = {}
        self.ends: dict[str, Done] = {}
        self.dark_ms: list[int] = []
        self.killed: list[str] = []

    def may_miss(self, done: Done) -> bool:
        """Whether the journal need not have it."""
        return not done.is_written or (not done.is_synced and any(dark_ms >= done.at_ms for dark_ms in self.dark_ms))

    def rows(self) -> list[rows.Row]:
        """What the real reader finds on the disk."""
        found, at = [], Position()
        while True:
            batch = read(JOURNAL, at, self.disk)
            found += batch.rows
            if batch.is_end or batch.position == at:
                return found
            at = batch.position


class Recorder:
    """A gate's journal (ports.Journal): the real one first, then whoever watches the world."""

    __slots__ = ("_evidence", "_file", "_is_lied_to", "_watcher")

    def __init__(self, file: FileJournal, evidence: Evidence, watcher: Journal, is_lied_to: Callable[[], bool]) -> None:
        self._file = file
        self._evidence = evidence
        self._watcher = watcher
        self._is_lied_to = is_lied_to

    def _done(self, *, is_synced: bool = False) -> Done:
        return Done(self._file.clock.now_ms(), not self._file.writer.trouble, is_synced)

    def intent(self, call: Call, intent: Intent) -> None:
        """An attempt is about to leave; one that may happen once only waits for the disk."""
        self._file.intent(call, intent)
        safe = call.effect is Effect.WRITE and self._file.writer.durable and not self._is_lied_to()
        self._evidence.attempts[call.id, intent.attempt] = self._done(is_synced=safe)
        self._watcher.intent(call, intent)

    def note(self, call: Call, note: Note) -> None:
        """An attempt ended."""
        self._file.note(call, note)
        self._watcher.note(call, note)

    def lost(self, call: Call, lose: Lose) -> None:
        """A grant came to nothing."""
        self._file.lost(call, lose)

    def end(self, call: Call, answer: Answer) -> None:
        """A call ended."""
        self._file.end(call, answer)
        self._evidence.ends[call.id] = self._done()


def contradictions(found: Iterable[Evidence], arrivals: Iterable[Arrival], *, is_calm: bool) -> list[str]:
    """Where journals and witnesses do not agree, as sentences; in a calm world every attempt arrives as well."""
    everything = [(one, one.rows()) for one in found]
    seen = Counter((row.call_id, row.attempt) for row in arrivals)
    intents = {(row.call, row.attempt) for _, told in everything for row in told if isinstance(row, rows.Intent)}
    excused = {attempt for one, _ in everything for attempt, done in one.attempts.items() if one.may_miss(done)}
    told = {attempt for one, _ in everything for attempt in one.attempts}
    counts = {
        "P8: {} requests reached a target twice": sum(times > 1 for times in seen.values()),
        "P8: {} requests reached a target that no gate sent": len(seen.keys() - told),
        "P8: {} requests at targets stand in no journal": len(seen.keys() - intents - excused),
        "P12: {} attempts in a journal were never made": len(intents - told),
        "P8: {} attempts in the journals reached no target": len(intents - seen.keys()) if is_calm else 0,
        "P12: {} numbers of rows do not ascend": sum(_disorder(told) for _, told in everything),
        "P4: {} calls ended in no journal": sum(_endless(one, told) for one, told in everything),
        "P4: {} calls ended twice in a journal": sum(times > 1 for times in _ends(everything).values()),
        "P12: {} attempts of a run that ended in order have no end": sum(map(_open, everything)),
    }
    return [sentence.format(count) for sentence, count in counts.items() if count]


def _disorder(told: list[rows.Row]) -> int:
    return sum(after.seq <= before.seq for before, after in pairwise(told))


def _ended(told: Iterable[rows.Row]) -> list[str]:
    return [row.call for row in told if isinstance(row, rows.End) or (isinstance(row, rows.Done) and row.end)]


def _ends(everything: list[tuple[Evidence, list[rows.Row]]]) -> Counter[str]:
    return Counter(call for _, told in everything for call in _ended(told))


def _endless(one: Evidence, told: list[rows.Row]) -> int:
    """Calls whose end was told to the caller and is not on file."""
    return len({call for call, done in one.ends.items() if not one.may_miss(done)}.difference(_ended(told)))


def _open(pair: tuple[Evidence, list[rows.Row]]) -> int:
    """Attempts without a note, by gates that were never killed and always wrote."""
    one, told = pair
    if one.killed or one.dark_ms or not all(done.is_written for done in (*one.attempts.values(), *one.ends.values())):
        return 0
    notes = {(row.call, row.attempt) for row in told if isinstance(row, rows.Done)}
    return len(one.attempts.keys() - notes)
