"""
A journal that lasts as long as its process: the newest entries in a ring, for tests and for a gate without a disk.

Nothing in it survives the end of the process; a running gate keeps its journal in files (stores/journal).
"""

from collections import deque
from typing import Final, NamedTuple

from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.record import Call

NEWEST: Final = 4_096


class Entry(NamedTuple):
    """One line: which call, which attempt of it, and what was noted."""

    call: str
    attempt: int
    noted: Intent | Note | Lose | Answer


class MemoryJournal:
    """ports.Journal over the `newest` entries."""

    __slots__ = ("_lines",)

    def __init__(self, newest: int = NEWEST) -> None:
        self._lines: deque[tuple[str, int, Intent | Note | Lose | Answer]] = deque(maxlen=newest)

    @property
    def entries(self) -> list[Entry]:
        """What was noted, oldest first."""
        return [Entry(*line) for line in self._lines]

    def intent(self, call: Call, intent: Intent) -> None:
        """Note an attempt before its first byte leaves."""
        self._lines.append((call.id, intent.attempt, intent))

    def note(self, call: Call, note: Note) -> None:
        """Note how an attempt ended."""
        self._lines.append((call.id, note.attempt, note))

    def lost(self, call: Call, lose: Lose) -> None:
        """Note a grant of which nothing left."""
        self._lines.append((call.id, call.attempt, lose))

    def end(self, call: Call, answer: Answer) -> None:
        """Note how the call ended."""
        self._lines.append((call.id, call.attempt, answer))
