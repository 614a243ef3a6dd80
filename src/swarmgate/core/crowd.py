"""
Which team fills the gate: near the bound on open calls the one that has most leaves room for the others (reliability TI-07).

Calls that wait in line are open, too. Where agents' keys name several teams, one that floods would take all the room there is, and
everybody else would find the gate busy. So the last fifth goes by parts: a team may have four times what is left. Counted is a
few times a second, and only while it is crowded.
"""

from collections import Counter
from collections.abc import Iterable, Sized
from typing import Final

from swarmgate.core.record import Call

OF_THE_REST: Final = 4  # times the room that is left: so one team takes up to four fifths, and none the last


def leaves_too_little(held: int, rest: int) -> bool:
    """Whether who holds so much of what teams share may have no more of the rest (reliability TI-07)."""
    return held >= OF_THE_REST * rest


class Crowd:
    """Open calls by the team of their key; `room` is how many may be open."""

    def __init__(self, room: int) -> None:
        self._held: Counter[str] = Counter()
        self.fill(room)

    def fill(self, room: int) -> None:
        """So many calls may be open."""
        self.room = room
        self.crowded_at = room * OF_THE_REST // (OF_THE_REST + 1)

    def count(self, calls: Iterable[Call], *, is_crowded: bool) -> None:
        """Look who holds what."""
        self._held = Counter(call.tenant for call in calls) if is_crowded else Counter()

    def is_too_much(self, team: str, calls: Sized) -> bool:
        """Whether one more call of this team would leave too little to the others."""
        return leaves_too_little(self._held[team], self.room - len(calls))
