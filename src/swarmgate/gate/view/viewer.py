"""
Who looks, and what of the gate is theirs: the calls of their key's team, the targets that their key may call.

A caller belongs to the team of its agent key; without a key, or with one that names no team, to those who have none. Nobody
sees another team's calls: for all teams there is the operator port (design 5: own scope; reliability TI-04).
"""

from collections.abc import Callable, Iterable

from swarmgate.core.callers import AGENT, KEY, OF_CALLERS, TEAM
from swarmgate.core.record import Call, Rung
from swarmgate.core.scope import ANY, Scope
from swarmgate.gate.view.directory import owner_of, taken


def is_own(scope: Scope, call: Call) -> bool:
    """Whether a call is one of the viewer's team."""
    return call.tenant == scope.team


def may_call(scope: Scope, target: str) -> bool:
    """Whether the viewer's key may call a target by its name, or a host by its URL (core/target.py: key)."""
    if scope.targets == ANY:
        return True
    host = target.partition("://")[2].partition("#")[0]
    if host and not host.endswith("]"):
        name, colon, port = host.rpartition(":")
        host = name if colon and port.isdigit() else host
    return scope.allows(host.strip("[]") or target)


Knows = Callable[[str, str], bool]  # whether a team may know of a host, or a group of hosts, that somebody has met


def met_as(target: str) -> str:
    """The name under which a host is met, by its URL; empty for a target of the operator's."""
    return target.partition("://")[2].partition("#")[0]


def sees(scope: Scope, rungs: Callable[[], Iterable[Rung]], knows: Knows) -> Callable[[str], bool]:
    """
    Which budgets the viewer may see: what its calls could take from, and the caps of its own team and agents.

    Hosts that only others have met are nothing to it.
    """
    reached: set[str] | None = None
    if scope.targets != ANY:
        routes = (route for rung in rungs() if may_call(scope, rung.target) for route in rung.routes.values())
        reached = {name for route in routes for name in taken(route)}

    own_agents, own_key = f"{AGENT}{scope.team} ", f"{KEY}{scope.capped_as}: "

    def seen(budget: str) -> bool:
        if budget.startswith(AGENT):
            if scope.team:
                return budget.startswith(own_agents)
            return budget.find(" ", len(AGENT)) > budget.find(": ")  # a team stands before its agents' names
        if budget.startswith(KEY):
            return budget.startswith(own_key)
        if budget.startswith(TEAM):
            whose = budget.removeprefix(TEAM).partition(": ")[0].partition(" ")[0]
            return scope.team in {"", whose}
        if not knows(scope.team, owner_of(budget)):
            return False
        return reached is None or budget in reached or budget.startswith(OF_CALLERS)

    return seen
