"""
Lets budgets learn: what attempts came to goes to the learners, and their revisions go to the store.

It stands before the journal, since both hear of every attempt. The rule is core/learning.py; a learned limit is a
bucket for its rate and leases for its cap, and each change is a compare-and-set of the revision in force.
"""

from dataclasses import dataclass, field

from swarmgate.core.answers import Revised
from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import LearnedLimit, Quantity, Revision, Sent
from swarmgate.core.limits import LONGEST_LEVEL_WINDOW_MS, BudgetKind, Limits
from swarmgate.core.record import Call
from swarmgate.ports import BudgetStore, Clock, Journal

FINEST = 1_000  # a learned rate is kept in thousandths of a unit per window


@dataclass(slots=True)
class Lesson:
    """One target's learner and the budgets that it moves; `changes` keeps every revision with its instant."""

    target: str
    learner: LearnedLimit
    in_flight: int = 0
    revisions: dict[str, int] = field(default_factory=dict)
    changes: list[tuple[int, Revision]] = field(default_factory=list)

    @property
    def rate_budget(self) -> str:
        """The bucket of the learned rate."""
        return f"{self.target}:learned:rate"

    @property
    def cap_budget(self) -> str:
        """The leases of the learned cap."""
        return f"{self.target}:learned:cap"

    def rate_limits(self, revision: int = 1) -> Limits:
        """The bucket that enforces what is believed of the rate, with headroom 1 (design 4: Learning)."""
        learner = self.learner
        fine = max(1, min(FINEST, LONGEST_LEVEL_WINDOW_MS // learner.window_ms))
        quota = max(1, learner.rate_micro * fine // MICRO)
        return Limits(
            BudgetKind.LEVEL,
            burst=learner.burst,
            quota=quota,
            window_ms=learner.window_ms * fine,
            revision=revision,
        )

    def cap_limits(self, revision: int = 1) -> Limits:
        """The leases that enforce what is believed of the cap."""
        return Limits(BudgetKind.LEASES, burst=max(1, self.learner.cap), revision=revision)


class Teacher:
    """A journal (ports.Journal) that teaches on the way; targets without a lesson pass through."""

    __slots__ = ("_clock", "_journal", "_open", "_store", "lessons")

    def __init__(self, journal: Journal, store: BudgetStore, clock: Clock, lessons: dict[str, Lesson]) -> None:
        self._journal = journal
        self._store = store
        self._clock = clock
        self._open: dict[str, tuple[Lesson, Sent]] = {}
        self.lessons = lessons

    def intent(self, call: Call, intent: Intent) -> None:
        """An attempt leaves: how many are in flight with it."""
        lesson = self.lessons.get(call.rungs[call.rung].target)
        if lesson is not None:
            lesson.in_flight += 1
            self._open[call.id] = (lesson, lesson.learner.sent(self._clock.now_ms(), lesson.in_flight))
        self._journal.intent(call, intent)

    def note(self, call: Call, note: Note) -> None:
        """What the attempt came to, and what follows from it."""
        taught = self._open.pop(call.id, None)
        if taught is not None:
            self._learn(*taught, note)
        self._journal.note(call, note)

    def _learn(self, lesson: Lesson, sent: Sent, note: Note) -> None:
        lesson.in_flight -= 1
        now_ms = self._clock.now_ms()
        found = [] if note.outcome is None else [lesson.learner.observe(sent, note.outcome, now_ms)]
        for revision in (*found, *lesson.learner.grow(now_ms)):
            if revision is not None:
                lesson.changes.append((now_ms, revision))
                self._revise(lesson, revision)

    def _revise(self, lesson: Lesson, revision: Revision) -> None:
        capped = revision.quantity is Quantity.CAP
        budget = lesson.cap_budget if capped else lesson.rate_budget
        expected = lesson.revisions.get(budget, 1)
        limits = lesson.cap_limits(expected + 1) if capped else lesson.rate_limits(expected + 1)

        def heard(answer: Revised) -> None:
            lesson.revisions[budget] = answer.revision or 1
            if not answer.done and answer.revision not in (
                0,
                expected,
            ):  # somebody else revised it: what is believed stands
                self._revise(lesson, revision)

        self._store.revise(budget, expected, limits, heard)

    def lost(self, call: Call, lose: Lose) -> None:
        """A grant is lost."""
        self._journal.lost(call, lose)

    def end(self, call: Call, answer: Answer) -> None:
        """The call has ended."""
        self._journal.end(call, answer)
