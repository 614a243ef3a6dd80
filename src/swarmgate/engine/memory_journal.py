"""
A journal that lasts as long as its process: the newest entries in a ring, for tests and for a gate without a disk.

It stands in until the append-only file is there; nothing in it survives the end of the process (design 3: two processes).
"""

from collections import deque
from typing import NamedTuple

from swarmgate.core.commands import Answer, Intent, Note
from swarmgate.core.record import Call

NEWEST = 4_096


class Entry(NamedTuple):
    """One line: which call, which attempt of it, and what was noted."""

    call: str
    attempt: int
    noted: Intent | Note | Answer


class MemoryJournal:
    """ports.Journal over the `newest` entries."""

    __slots__ = ("_lines",)

    def __init__(self, newest: int = NEWEST) -> None:
        self._lines: deque[tuple[str, int, Intent | Note | Answer]] = deque(maxlen=newest)

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

    def end(self, call: Call, answer: Answer) -> None:
        """Note how the call ended."""
        self._lines.append((call.id, call.attempt, answer))
