"""Caps: what a caller takes from beside its route, by its names; bounded whatever it calls itself."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.answers import Granted
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.caps import ANY_TARGET, MOST_AGENTS, MOST_REMEMBERED, OTHERS, Caps, Group
from swarmgate.core.compiler import Published, Unit, compile_cap
from swarmgate.core.limits import BudgetKind
from swarmgate.core.routing import Budget, budget, route
from swarmgate.core.scope import Scope

names = st.text("ab-", max_size=4)


def cap(name, amount=5, window_ms=1_000, unit=Unit.REQUESTS):
    published = Published(amount, window_ms, unit, headroom_percent=100, reserve=0)
    return Budget(name, published, compile_cap(published))


def of_agent(agent):
    return (cap(f"agent {agent}: requests"), cap(f"agent {agent}: concurrent", unit=Unit.CONCURRENT, window_ms=0))


def groups(kind, *patterns):
    return [Group(f"{kind}{at}", (one,), (cap(f"{kind}{at}: requests"),)) for at, one in enumerate(patterns)]


def make():
    shares = {"openai": (cap("team at openai", 100),)}
    teams = [*groups("team", "a*"), Group("rest", ("*",), (), shares)]
    return Caps(of_agent, teams, groups("environment", "*-b"), {"literature": (cap("literature"),)})


@given(names, st.sampled_from(["", "literature", "unknown"]), st.sampled_from(["openai", "other"]))
def test_every_cap_of_a_caller_is_taken_once(agent, task_type, target):
    member = make().of(agent, task_type)
    routes = member.routes or {ANY_TARGET: route("", ())}
    taken = [name for name, _, _ in (routes.get(target) or routes[ANY_TARGET]).demands(1, 1)]
    assert len(taken) == len(set(taken))
    assert ("literature" in taken) == (task_type == "literature")
    assert (f"agent {agent}: requests" in taken) == bool(agent)
    assert ("team0: requests" in taken) == agent.startswith("a") == (member.team == "team0")
    assert ("team at openai" in taken) == (target == "openai" and not agent.startswith("a"))
    assert ("environment0: requests" in taken) == agent.endswith("-b") == (member.environment == "environment0")


def test_the_team_of_a_key_counts_whatever_the_agent_calls_itself():
    member = make().of("abc", "", Scope("k", "rest"))
    assert member.team == "rest"
    assert "team at openai" in str(member.routes["openai"])
    assert "team0: requests" not in str(member.routes)
    assert make().of("abc", "", Scope("k", "unheard")).team == "unheard"


@given(st.lists(names, max_size=12))
def test_a_budget_is_fresh_once(agents):
    caps = make()
    for agent in agents:
        caps.of(agent, "")
    fresh = [one.name for one in caps.fresh]
    assert sorted(fresh) == sorted(one.name for agent in set(agents) if agent for one in of_agent(agent))
    assert caps.unnamed == agents.count("")


def test_agents_beyond_the_bound_share_one_budget():
    caps = Caps(of_agent)
    for number in range(MOST_AGENTS + MOST_REMEMBERED):
        caps.of(str(number), "")
    assert {one.name for one in caps.fresh if OTHERS in one.name} == {one.name for one in of_agent(OTHERS)}
    assert len(caps.fresh) <= 2 * MOST_AGENTS + 2 * (MOST_REMEMBERED + 1)
    assert len(caps._agents) <= MOST_AGENTS + 1
    assert len(caps._known) <= MOST_REMEMBERED
    assert caps.of("new", "").routes == caps.of("newer", "").routes
    assert caps.of("7", "").routes != caps.of("8", "").routes


def test_ti_07_a_team_that_invents_agents_leaves_places_to_others_and_shares_only_its_own():
    caps = Caps(of_agent)
    for team, wanted in (("", 30_000), ("red", 30_000), ("blue", 300)):
        scope = Scope(team, team)
        for number in range(wanted):
            caps.of(f"a{number}", "", scope)
    named = Counter(name.partition(" ")[0] if " " in name else "" for name in caps._agents)
    assert named[""] == 10_001  # and the one of all others
    assert 1_900 < named["red"] <= 2_001
    assert named["blue"] == 300
    assert len(caps._agents) <= MOST_AGENTS
    routes = {team: caps.of("late", "", Scope(team, team)).routes for team in ("", "red", "blue")}
    assert f"agent red {OTHERS}: requests" in str(routes["red"])
    assert f"agent {OTHERS}: requests" in str(routes[""])
    assert "agent blue late: requests" in str(routes["blue"])


@given(st.text("ab:-", min_size=1, max_size=5))
def test_an_agents_budget_is_found_by_its_name(agent):
    caps = make()
    for one in of_agent(agent):
        assert caps.limits_of(one.name) == one.compiled.limits
    assert caps.limits_of(f"agent {agent}: other") is None
    assert caps.limits_of(agent) is None


def test_who_has_no_cap_has_no_routes():
    assert Caps(lambda _agent: ()).of("a", "literature") == ("", "", None)


def test_a_route_with_caps_is_one_demand():
    target = budget("t", Published(600, 60_000, largest=(1, 1, 1)))
    own = cap("agent", unit=Unit.TOKENS, amount=100)
    slot = cap("slot", unit=Unit.CONCURRENT, window_ms=0)
    joined = route("key", [target]).plus(route("", [own, slot]))
    apart = route("key", [target, own, slot])
    assert joined._replace(fresh_ms=0) == apart._replace(fresh_ms=0)
    assert joined.fresh_ms == route("key", [target]).fresh_ms


@given(
    st.integers(1, 40),
    st.integers(30, 5_000),
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 8)), max_size=60),
)
def test_a_cap_never_holds_more_in_any_window(amount, window_ms, asks):
    one = cap("c", amount, window_ms)
    assert one.compiled.limits.kind is BudgetKind.COUNTER
    book, now_ms, taken = Book(), 0, []
    kernel.define(book, "c", one.compiled.limits)
    for number, (wait_ms, units) in enumerate(asks):
        now_ms += wait_ms
        request = Take(str(number), str(number), 1, first_score(1), ((("c", units, 0),),), 1_000, waits=False)
        if isinstance(kernel.take(book, request, now_ms), Granted):
            taken.append((now_ms, units))
    for at_ms, _ in taken:
        assert sum(units for since_ms, units in taken if at_ms <= since_ms < at_ms + window_ms) <= amount
