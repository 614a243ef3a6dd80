"""
Hosts as they are met: which budgets a request to one takes from, who learns from it, whether it rests.

Every request is charged to its host and to its host's group (the registrable domain), of which it takes a place. A host
that a policy counts takes from the policy's budgets and from those of the domains around it. Any other has a learned budget
of its own and shares one with what is unknown of its group, so that neither a new name nor a new subdomain is a way around.
http and https of a host are one host here. The number of hosts with budgets of their own is bounded; those beyond it share
one (core/target_table.py). Names that nothing was ever sent to make room for others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from itertools import islice
from typing import Final, NamedTuple

from swarmgate.core.compiler import WAY, Published, Unit
from swarmgate.core.groups import registrable_group
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Ceilings, Learned, LearnedLimit, Revision
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import Call, Ring, Route, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.routing import Budget, route
from swarmgate.core.target import DEFAULT_PORTS, Target
from swarmgate.core.target_policy import Judged, counts_requests, judge, judge_class, leading
from swarmgate.core.target_ring import ONLY_KEY, TargetRing
from swarmgate.core.target_table import OTHER, TargetTable, forget_target, place_target
from swarmgate.gate.egress.met import Met
from swarmgate.gate.egress.plan import WINDOW_MS, EgressPlan, Pace
from swarmgate.ports import Clock

GROUP: Final = "group "
CONNECTIONS: Final = 32  # to one host; so few that one which takes one request a second is not run over
GROUP_FACTOR: Final = 2  # hosts of one owner together, beside what each of them may
LONGEST_WINDOW_MS: Final = 3_600_000  # a learner that looks once a day learns nothing
ANY: Final = 1_000_000
IDLE_MS: Final = 600_000
TIDY_AT_ONCE: Final = 256
TIDY_EVERY_MS: Final = 10_000
ROOM_EVERY_MS: Final = 250
MOST_KEPT: Final = 20_000  # lessons over restarts

Define = Callable[[str, Limits], None]
Forget = Callable[[str], bool]


class Host:
    """
    The live state of one host that may be called; `rungs` by path class and scheme.

    `is_met` = something was sent to it; `is_gone` = it was let go, and the next call finds another one in its place.
    """

    __slots__ = ("group", "is_gone", "is_met", "lessons", "placed", "retries", "ring", "rungs", "used_ms")

    def __init__(self, placed: Target, group: str) -> None:
        self.placed = placed
        self.group = group
        self.ring = TargetRing()
        self.retries = RetryBudget()
        self.rungs: dict[Target, Rung] = {}
        self.lessons: dict[str, Lesson] = {}
        self.used_ms = 0
        self.is_met = self.is_gone = False

    @property
    def is_shared(self) -> bool:
        """Whether hosts beyond the bounds of the table share it: budgets, yes; that one of them asked to be left alone, no."""
        return self.placed.scheme == OTHER.scheme

    def is_quiet(self, now_ms: int) -> bool:
        """Whether nothing is in flight to it, and it asked for no pause that goes on."""
        return self.ring.paused_until_ms <= now_ms and not any(one.in_flight for one in self.lessons.values())


class Destination(NamedTuple):
    """Where a request goes: its target with the path class, what holds there, and the rung that it takes of its host."""

    target: Target
    judged: Judged
    rung: Rung
    host: Host


class Hosts:
    """
    Every host that was called lately.

    `define` makes a budget known to the store, `forget` lets it go if it is idle. `published` is told what is believed of
    each learned budget, for those who show budgets. `open` are the calls that have not ended: what they take from stays.
    """

    open: Callable[[], Iterable[Call]] = staticmethod(tuple)

    def __init__(
        self,
        plan: EgressPlan,
        clock: Clock,
        define: Define,
        forget: Forget,
        published: MutableMapping[str, Published],
    ) -> None:
        self.plan = plan
        self._clock = clock
        self._define = define
        self._forget = forget
        self._published = published
        self._kept = dict(plan.kept)  # what was learned by now, the newest last
        self._pauses = dict(plan.pauses)
        self._tidy_ms = self._room_ms = 0
        settings = plan.settings
        self._places = Published(CONNECTIONS * settings.most_per_group, unit=Unit.CONCURRENT)
        self.table = TargetTable(settings.most_targets, settings.most_per_group, _exact(plan))
        self.hosts: dict[Target, Host] = {}
        self.met = Met()
        self._sizes: Counter[str] = Counter()  # hosts by group
        self.lessons: dict[str, Lesson] = {}  # of policies and of groups: they outlive single hosts

    def place(self, target: Target, method: str, path: str, team: str = "") -> Destination:
        """The budgets for a request by `method` to the judged `path` of a target, that somebody of a team calls."""
        plan = self.plan
        judged = judge(plan.policies, target.host, method, path)
        group = registrable_group(target.host, plan.suffixes, plan.settings.groups)
        placed = place_target(self.table, joint(target), group)
        if placed.scheme == OTHER.scheme and self._makes_room():
            placed = place_target(self.table, joint(target), group)
        if placed == OTHER:  # whose host the first of them was is nothing to the others
            group = placed.host
        host = self.hosts.get(placed)
        if host is None:
            host = self.hosts[placed] = Host(placed, group)
            host.ring.pause(self._pauses.pop(placed.authority, 0))
            self._sizes[group] += 1
        host.used_ms = self._clock.now_ms()
        exact = target._replace(path_class=judged.path_class)
        self.met.note(team, placed.authority, GROUP + group, *[exact.authority] * host.is_shared)
        rung = host.rungs.get(exact)
        if rung is None:
            while len(host.rungs) >= TIDY_AT_ONCE:  # the shared host of an overflow meets any number of targets
                self._drop(host, next(iter(host.rungs)))
            rung = host.rungs[exact] = self._rung(host, exact, judged)
        return Destination(exact, judged, rung, host)

    def pause(self, place: Destination, until_ms: int) -> None:
        """The host said that nothing is left until then."""
        ring = place.rung.ring
        if isinstance(ring, TargetRing):
            ring.pause(until_ms)

    def restated(self, name: str, published: Published) -> tuple[Lesson, Revision | None] | None:
        """The operator states another limit for a policy's budget: its learner, if it has one by now, and what follows."""
        lesson = self.lessons.get(name)
        if lesson is None or not lesson.stated:
            return None
        rate = max(1, published.amount * lesson.learner.window_ms // published.window_ms)
        return lesson, lesson.learner.restate(rate)

    def replace(self, plan: EgressPlan) -> list[tuple[Lesson, Revision]]:
        """
        Other policies and another pace, for requests that come from now on; what was learned stays. What follows for budgets.

        How many hosts are known, and what their groups are, stays as it was at the start.
        """
        self.plan = plan
        self.table.configured = frozenset(_exact(plan))
        pace, moved = plan.settings.pace, []
        for host in self.hosts.values():
            known = [(target, judge_class(plan.policies, target.host, target.path_class)) for target in host.rungs]
            host.rungs = {target: self._rung(host, target, judged) for target, judged in known if judged is not None}
            moved += [(one, more) for one in host.lessons.values() for more in one.learner.bound(pace.ceilings())]
        for name, lesson in self.lessons.items():
            if not lesson.stated:
                moved += [(lesson, more) for more in lesson.learner.bound(pace.times(GROUP_FACTOR).ceilings())]
            elif name in self._published:
                _, revision = self.restated(name, self._published[name]) or (lesson, None)
                moved += [(lesson, revision)] if revision is not None else []
        return moved

    def rungs(self) -> Iterator[Rung]:
        """Everything that was called lately."""
        for host in self.hosts.values():
            yield from host.rungs.values()

    def learned(self) -> dict[str, Learned]:
        """What is worth keeping over a restart, by lesson."""
        return dict(self._kept)

    def pauses(self) -> dict[str, int]:
        """Until when hosts asked to be left alone, on the gate's clock."""
        now_ms = self._clock.now_ms()
        before = [pair for pair in self._pauses.items() if pair[1] > now_ms]
        resting = [host for host in self.hosts.values() if host.ring.paused_until_ms > now_ms]
        found = [(host.placed.authority, host.ring.paused_until_ms) for host in resting]
        return dict([*before, *found][-MOST_KEPT:])

    def is_open(self, budget: str) -> bool:
        """Whether a budget is the places of a group of which nobody said fewer: no limit, and none that evidence should weigh."""
        return budget.startswith(GROUP) and self._published.get(budget) == self._places

    def tidy(self) -> None:
        """Let go of hosts that were not called for long; what was learned of them is kept for when they are."""
        now_ms = self._clock.now_ms()
        if now_ms < self._tidy_ms:
            return
        self._tidy_ms, before_ms = now_ms + TIDY_EVERY_MS, now_ms - IDLE_MS
        idle = (host for host in self.hosts.values() if host.used_ms < before_ms and host.is_quiet(now_ms))
        for host in list(islice(idle, TIDY_AT_ONCE)):
            for target in list(host.rungs) if host.is_shared else ():
                self._drop(host, target)
            self._remove(host)

    def _makes_room(self) -> bool:
        """Let go of names that nothing was sent to, the oldest first: they are free to invent, and many lead nowhere."""
        now_ms = self._clock.now_ms()
        if now_ms < self._room_ms:
            return False
        self._room_ms = now_ms + ROOM_EVERY_MS
        wanted = {id(rung) for call in self.open() for rung in call.rungs}
        unmet = (one for one in self.hosts.values() if not one.is_met and not one.is_shared and one.is_quiet(now_ms))
        found = (one for one in unmet if wanted.isdisjoint(map(id, one.rungs.values())))
        for host in list(islice(found, TIDY_AT_ONCE)):
            self._remove(host)
        return True

    def _remove(self, host: Host) -> None:
        if not self._let_go(host):
            return
        del self.hosts[host.placed]
        host.is_gone = True
        self.met.forget(host.placed.authority)
        forget_target(self.table, host.placed)
        self._sizes[host.group] -= 1
        if not self._sizes[host.group]:
            self._let_group_go(host.group)

    def _let_go(self, host: Host) -> bool:
        names = [name for one in host.lessons.values() for name, _ in one.limits()]
        gone = [name for name in names if self._forget(name)]
        for name in gone:
            self._published.pop(name, None)
        if len(gone) == len(names):
            return True
        host.lessons.clear()  # what is left is busy: it is defined anew by the next call, and kept until then
        host.rungs.clear()
        return False

    def _drop(self, host: Host, target: Target) -> None:
        del host.rungs[target]
        self.met.forget(target.authority)

    def _let_group_go(self, group: str) -> None:
        del self._sizes[group]
        self.met.forget(GROUP + group)
        names = (
            [places(group)] if self._published.get(places(group)) == self._places else []
        )  # an operator's word stays
        lesson = self.lessons.get(GROUP + group)
        if lesson is not None and not lesson.in_flight:
            del self.lessons[lesson.target]  # what of it is still busy is defined anew by the next call
            names += [name for name, _ in lesson.limits()]
        for name in names:
            if self._forget(name):
                self._published.pop(name, None)

    def _rung(self, host: Host, target: Target, judged: Judged) -> Rung:
        enforced = [(policy, kind) for policy, kind in judged.classed() if not policy.shadow]
        budgets = [one for policy, kind in enforced for one in policy.budgets.get(kind, ())]
        stated = [leading(policy, kind) for policy, kind in enforced]
        lessons = [self._beside(one) for one in stated if one is not None]
        if not counts_requests(budgets):
            lessons += self._of_unknown(host)
        made = _with_lessons(route(ONLY_KEY, budgets), lessons, self.open_group(host.group))
        watching = [(policy, kind) for policy, kind in judged.classed() if policy.shadow]
        watched = tuple([(policy.name, _on_arrival(policy.budgets.get(kind, ()))) for policy, kind in watching])
        ring: Ring = host.ring
        if host.is_shared:
            before = host.rungs.get(target)
            ring = TargetRing() if before is None else before.ring
        return Rung(target.key, "", {ONLY_KEY: made}, ring, host.retries, tuple(lessons), watched=watched)

    def open_group(self, group: str) -> str:
        """
        The budget of a group's places, made known: there are as many as its hosts may have connections.

        They hold nobody back until an operator pauses the group, or says fewer.
        """
        name = places(group)
        self._define(name, Limits(BudgetKind.LEASES, burst=self._places.amount))
        self._published.setdefault(name, self._places)
        return name

    def _beside(self, stated: Budget) -> Lesson:
        """The learner beside a stated limit: it stands at the limit until the host takes less."""
        name = stated.name
        lesson = self.lessons.get(name)
        if lesson is None:
            begins = _stated(self._published.get(name, stated.published))
            lesson = self.lessons[name] = self._make(name, *begins, stated=True)
        return lesson

    def _of_unknown(self, host: Host) -> Iterator[Lesson]:
        """The learners of a host whose requests nothing counts, and of what is unknown of its group."""
        pace = self.plan.settings.pace
        name = host.placed.authority
        if name not in host.lessons:
            host.lessons[name] = self._beginner(name, pace)
        yield host.lessons[name]
        name = GROUP + host.group
        if name not in self.lessons:
            self.lessons[name] = self._beginner(name, pace.times(GROUP_FACTOR))
        yield self.lessons[name]

    def _beginner(self, name: str, pace: Pace) -> Lesson:
        return self._make(name, pace.start(), WINDOW_MS, pace.ceilings())

    def _make(self, name: str, start: Learned, window_ms: int, most: Ceilings, *, stated: bool = False) -> Lesson:
        learner = LearnedLimit(self._kept.get(name, start), window_ms, most, self._clock.now_ms())
        lesson = Lesson(name, learner, stated)
        for own, limits in lesson.limits():
            self._define(own, limits)
        self.show(lesson)
        return lesson

    def show(self, lesson: Lesson) -> None:
        """Have what is believed now kept, and shown with the limits; where a limit is stated, only what is narrower."""
        learner = lesson.learner
        if lesson.changes:
            self._kept.pop(lesson.target, None)
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[lesson.target] = learner.learned
        rate = Published(max(1, learner.rate_micro // MICRO), learner.window_ms)
        cap = Published(learner.cap, unit=Unit.CONCURRENT)
        wide = lesson.stated and learner.cap >= learner.ceilings.cap
        for name, believed, hidden in ((lesson.rate_budget, rate, lesson.is_wide), (lesson.cap_budget, cap, wide)):
            if hidden:
                self._published.pop(name, None)
            else:
                self._published[name] = believed


def places(group: str) -> str:
    """The budget of what is in flight to all hosts of a group."""
    return f"{GROUP}{group}: concurrent"


def joint(target: Target) -> Target:
    """The one target whose budgets http and https of a host share, path classes aside."""
    if target.port == DEFAULT_PORTS.get(target.scheme):
        return Target("https", target.host, DEFAULT_PORTS["https"])
    return target.origin


def _exact(plan: EgressPlan) -> list[Target]:
    """The hosts that a policy names, which always have budgets of their own."""
    return [joint(Target("https", host, 443)) for host in plan.policies.hosts if not host.startswith("*")]


def _stated(published: Published) -> tuple[Learned, int, Ceilings]:
    """Where the learner beside a stated limit begins, its window, and what it never exceeds."""
    window_ms = min(published.window_ms, LONGEST_WINDOW_MS)
    rate = max(1, published.amount * window_ms // published.window_ms)
    return Learned(rate * MICRO, ANY * MICRO, rate * MICRO), window_ms, Ceilings(rate, ANY, rate)


def _on_arrival(budgets: Iterable[Budget]) -> Route:
    """A route through budgets that only watch: as if every request were delivered at once."""
    made = route(ONLY_KEY, budgets)
    known = tuple([demand for demand in made.fixed if not demand[0].endswith(WAY)])
    return made._replace(fixed=known, ways=(), weighed=())


def _with_lessons(made: Route, lessons: list[Lesson], place: str) -> Route:
    """A route through the learned budgets too, and through a place of its group."""
    demands = tuple(demand for one in lessons for demand in one.demands())
    caps = tuple(one.cap_budget for one in lessons)
    return made._replace(fixed=(*made.fixed, *demands, (place, 0, 1)), whole=(*made.whole, *caps, place))
