"""
Lets budgets learn: what attempts came to goes to the learners of their rung, and their revisions go to the store.

It stands before the journal, since both hear of every attempt. The rule is core/learning.py; each change is a
compare-and-set of the revision in force.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from swarmgate.core.answers import Revised
from swarmgate.core.commands import Intent, Note
from swarmgate.core.learning import Quantity, Revision, Sent
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import Limits
from swarmgate.core.record import Call
from swarmgate.ports import Clock, Journal


class Reviser(Protocol):
    """The pump, which also wakes who waits for what was raised; or a store."""

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits if their revision is still `expected`."""
        ...


class Watcher(Protocol):
    """Who looks on at what leaves by rungs that are watched, and changes nothing."""

    def sent(self, call: Call) -> None:
        """An attempt leaves."""

    def ended(self, call: Call, note: Note) -> None:
        """It is over, or there was no connection for one."""


class Teacher:
    """
    A journal (ports.Journal) that teaches on the way; rungs without lessons and watchers pass through.

    `held` are budgets that stay paused whatever is learned of them; `moved` hears of each lesson that changed, `watcher`
    sees what leaves by watched rungs.
    """

    __slots__ = ("_clock", "_journal", "_open", "_reviser", "end", "heard", "held", "lost", "moved", "watcher")

    def __init__(self, journal: Journal, reviser: Reviser, clock: Clock) -> None:
        self._journal = journal
        self._reviser = reviser
        self._clock = clock
        self._open: dict[str, list[tuple[Lesson, Sent]]] = {}
        self.heard: Callable[[Lesson, Limits, Revision], None] = lambda *_: None  # whoever keeps the evidence
        self.held: set[str] = set()
        self.moved: Callable[[Lesson], None] = lambda _: None
        self.watcher: Watcher | None = None
        self.end = journal.end  # nothing to learn there
        self.lost = journal.lost

    def intent(self, call: Call, intent: Intent) -> None:
        """An attempt leaves: how many are in flight with it."""
        rung = call.rungs[call.rung]
        lessons = rung.lessons
        if rung.watched and self.watcher is not None:
            self.watcher.sent(call)
        if lessons:
            now_ms = self._clock.now_ms()
            taught = self._open[call.id] = []
            for lesson in lessons:
                lesson.in_flight += 1
                taught.append((lesson, lesson.learner.sent(now_ms, lesson.in_flight)))
        self._journal.intent(call, intent)

    def note(self, call: Call, note: Note) -> None:
        """What the attempt came to, and what follows from it."""
        rung = call.rungs[note.rung]  # the call may have stepped down by now
        if rung.watched and self.watcher is not None:
            self.watcher.ended(call, note)
        if rung.lessons:
            for lesson, sent in self._open.pop(call.id, ()):
                self._learn(lesson, sent, note)
        self._journal.note(call, note)

    def told(self, lesson: Lesson, revision: Revision | None) -> None:
        """The target itself said what it takes: in force at the next admission."""
        if revision is not None:
            self._changed(lesson, revision)

    def _learn(self, lesson: Lesson, sent: Sent, note: Note) -> None:
        lesson.in_flight -= 1
        now_ms = self._clock.now_ms()
        found = [] if note.outcome is None else [lesson.learner.observe(sent, note.outcome, now_ms)]
        for revision in (*found, *lesson.learner.grow(now_ms)):
            if revision is not None:
                self._changed(lesson, revision)

    def _changed(self, lesson: Lesson, revision: Revision) -> None:
        lesson.changes.append((self._clock.now_ms(), revision))
        self.moved(lesson)
        self._revise(lesson, revision)

    def _revise(self, lesson: Lesson, revision: Revision) -> None:
        capped = revision.quantity is Quantity.CAP
        budget = lesson.cap_budget if capped else lesson.rate_budget
        expected = lesson.revisions.get(budget, 1)
        limits = lesson.cap_limits(expected + 1) if capped else lesson.rate_limits(expected + 1)
        if budget in self.held:
            limits = replace(limits, paused=True)

        def heard(answer: Revised) -> None:
            lesson.revisions[budget] = answer.revision or 1
            if answer.done:
                self.heard(lesson, limits, revision)
            if not answer.done and answer.revision not in (
                0,
                expected,
            ):  # somebody else revised it: what is believed stands
                self._revise(lesson, revision)

        self._reviser.revise(budget, expected, limits, heard)
