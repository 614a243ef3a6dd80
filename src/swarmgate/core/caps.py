"""
What a caller takes from beside the budgets of its route: the caps of its key, agent, team, environment and task type.

A cap is the operator's own limit, so it is kept as it is written: a counter that never holds more than N in any window,
or a number of calls in progress (design 4: Line, the last sentence; essay A: per-agent QPS cap). All of them are taken
with the route's budgets, all or nothing. Callers choose their names, so their number is bounded, and a team that invents names
leaves places to the others: agents of a team beyond that share one budget. Who gives no name has no cap of its own, and is counted.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from swarmgate.core.callers import AGENT, KEY
from swarmgate.core.crowd import leaves_too_little
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import Limits
from swarmgate.core.record import Route
from swarmgate.core.routing import Budget, route
from swarmgate.core.scope import NOBODY, Scope

MOST_AGENTS: Final = 12_500  # of one team alone 10,000 (core/crowd.py)
MOST_REMEMBERED: Final = 16_384  # agents with their task types; what is forgotten is looked up again
OTHERS: Final = "others"  # the one name of all agents of a team beyond the bound
ANY_TARGET: Final = ""

OfKey = Callable[[str, tuple[str, ...]], tuple[Budget, ...]]  # errors: `BadInput` for what is no limit


class Group(NamedTuple):
    """
    Agents that share caps: a team or an environment, by patterns of their names (`*` has those without one, too).

    `shares` are its parts of what each target allows, by target.
    """

    name: str
    agents: tuple[str, ...]
    budgets: tuple[Budget, ...] = ()
    shares: Mapping[str, tuple[Budget, ...]] = {}


class Member(NamedTuple):
    """Who a caller is, and what it takes from by target; `ANY_TARGET` stands for one that is not in `routes`."""

    team: str
    environment: str
    routes: dict[str, Route] | None


class Caps:
    """
    Every cap of a configuration; `of_agent` makes the budgets of one agent, named `agent NAME: ...`.

    `of_key` makes those of an agent key from its limits, named `key ID: LIMIT`, so that the name alone tells the limit: the
    configuration does not know them. `counts` = the configuration has any cap.

    `fresh` are budgets that a store does not know yet: whoever asks `of` defines them before the call takes from them.
    """

    __slots__ = (
        "_agents",
        "_environments",
        "_keys",
        "_known",
        "_named",
        "_of_agent",
        "_of_key",
        "_task_types",
        "_teams",
        "counts",
        "fresh",
        "unnamed",
    )

    def __init__(
        self,
        of_agent: Callable[[str], tuple[Budget, ...]],
        teams: Sequence[Group] = (),
        environments: Sequence[Group] = (),
        task_types: Mapping[str, tuple[Budget, ...]] | None = None,
        of_key: OfKey = lambda _key, _limits: (),
        *,
        counts: bool = True,
    ) -> None:
        self._of_agent = of_agent
        self._teams = teams
        self._environments = environments
        self._task_types = task_types or {}
        self._of_key = of_key
        self.counts = counts
        self._agents: set[str] = set()
        self._named: Counter[str] = Counter()  # of them, by the team of their key
        self._keys: set[str] = set()
        self._known: dict[tuple[str, str, str, str], Member] = {}
        self.fresh: list[Budget] = []
        self.unnamed = 0

    def of_agent(self, agent: str) -> tuple[Budget, ...]:
        """The budgets of one agent."""
        return self._of_agent(agent)

    def limits_of(self, budget: str) -> Limits | None:
        """The limits of an agent's or a key's budget by its name; None if none has such a one."""
        owner, _, said = budget.partition(": ")
        if owner.startswith(KEY):
            try:
                own = self._of_key(owner.removeprefix(KEY), (said,))
            except BadInput:  # a limit as nobody writes it any more
                return None
        elif owner.startswith(AGENT):
            own = self._of_agent(owner.removeprefix(AGENT))
        else:
            return None
        return next((one.compiled.limits for one in own if one.name == budget), None)

    def of(self, agent: str, task_type: str, scope: Scope = NOBODY) -> Member:
        """
        The caps of a caller; empty names are those that it did not give.

        `scope` is that of its key: the team that it names counts, whatever the agent calls itself.
        """
        if not agent:
            self.unnamed += 1
        if task_type not in self._task_types:
            task_type = ""
        found = self._known.get((agent, task_type, scope.team, scope.capped_as))
        return found if found is not None else self._meet(agent, task_type, scope)

    def _meet(self, agent: str, task_type: str, scope: Scope) -> Member:
        """Look a caller up for the first time."""
        named = scope.team
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        team = next((one for one in self._teams if one.name == named), None) if named else _first(self._teams, agent)
        environment = _first(self._environments, agent)
        own = self._own(named, agent)
        budgets = [*self._of(scope), *own, *self._task_types.get(task_type, ())]
        groups = [group for group in (team, environment) if group is not None]
        for group in groups:
            budgets += group.budgets
        routes = {ANY_TARGET: budgets}
        for target in {target for group in groups for target in group.shares}:
            routes[target] = [*budgets, *(share for group in groups for share in group.shares.get(target, ()))]
        member = Member(
            named or (team.name if team else ""),
            environment.name if environment else "",
            {target: route("", taken) for target, taken in routes.items()} if any(routes.values()) else None,
        )
        self._known[agent, task_type, named, scope.capped_as] = member
        return member

    def _of(self, scope: Scope) -> tuple[Budget, ...]:
        if not scope.capped_as:
            return ()
        budgets = self._of_key(scope.capped_as, scope.limits)
        if scope.capped_as not in self._keys:
            self._keys.add(scope.capped_as)
            self.fresh += budgets
        return budgets

    def _own(self, team: str, agent: str) -> tuple[Budget, ...]:
        """The budgets of an agent, which has a place of its own where its team may have one more."""
        if not agent:
            return ()
        name = _of(team, agent)
        if name not in self._agents and leaves_too_little(self._named[team], MOST_AGENTS - len(self._agents)):
            name = _of(team, OTHERS)
        budgets = self._of_agent(name)
        if name not in self._agents:
            self._agents.add(name)
            self._named[team] += 1
            self.fresh += budgets
        return budgets


def _of(team: str, agent: str) -> str:
    """What an agent is called among those of all teams."""
    return f"{team} {agent}" if team else agent


def _first(groups: Sequence[Group], agent: str) -> Group | None:
    """The first group with a pattern that the agent's name fits."""
    return next((group for group in groups if any(fnmatchcase(agent, pattern) for pattern in group.agents)), None)
