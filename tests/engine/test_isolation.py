"""A caller at its own cap slows nobody at a target down, though the target takes one call at a time (reliability TI-07; design 2: P5)."""

import pytest

from life import OK, Life, World, route, rung
from swarmgate.core.commands import End
from swarmgate.core.events import DELIVERED
from swarmgate.core.limits import BudgetKind, Limits, Tier

SITE = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=1_000)
WAY = Limits(BudgetKind.LEASES, burst=1, tier=Tier.WAYS)
SLOTS = Limits(BudgetKind.LEASES, burst=1)
CAPS = {
    "team a: calls in progress": Limits(BudgetKind.LEASES, burst=1, tier=Tier.CALLERS),
    "team a: calls a minute": Limits(BudgetKind.COUNTER, burst=3, window_ms=60_000, slices=24, tier=Tier.CALLERS),
}
SLOTS_OF_A = CAPS["team a: calls in progress"]
SECONDS = 120


def lasts(ms):
    return Life(sends=(((20, DELIVERED), (ms, OK)),))


def routes(target, cap=""):
    """What a call takes: the target's budgets, and perhaps its team's cap."""
    fixed = [("site", 1, 0), ("way", 0, 1)] if target == "site" else [("slots", 0, 1)]
    whole = ("slots",) if target == "slots" else ()
    if cap.endswith("calls in progress"):
        fixed, whole = [*fixed, (cap, 0, 1)], (*whole, cap)
    elif cap:
        fixed.append((cap, 1, 0))
    return (rung("t", route("k", tuple(fixed), (), whole=whole, ways=("way",) if target == "site" else ())),)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("target", ["site", "slots"])
def test_others_get_what_a_capped_team_leaves(target, cap, rank):
    world = World({"site": SITE, "way": WAY, "slots": SLOTS, **CAPS})
    for second in range(SECONDS):
        for number in range(3):  # each of many agents, so that no agent's own backlog holds them back
            world.call(
                f"capped-{second}-{number}",
                lasts(20_000 if target == "site" else 200),
                rungs=routes(target, cap),
                agent=f"a{second}-{number}",
                after_ms=1_000 * second + 1,
                wait_until_ms=world.time.now_ms() + 1_000 * second + 20_000,
            )
    others = [
        world.call(
            f"other-{number}",
            lasts(200),
            rungs=routes(target),
            rank=rank,
            agent=f"b{number}",
            after_ms=1_250 * number + 600,
        )
        for number in range(SECONDS * 4 // 5)
    ]
    world.run(1_000 * SECONDS + 60_000)
    sent_ms = {name: at_ms for name, _, _, at_ms in world.wire.seen}
    late_ms = [sent_ms.get(call.id, 10**12) - call.arrived_ms for call in others]
    assert [call.end for call in others] == [End.ANSWERED] * len(others)
    assert sum(late_ms) / len(late_ms) <= 1_100, sorted(late_ms)


def test_whoever_waits_for_a_moment_at_its_own_cap_is_not_paced_by_those_who_wait_for_theirs():
    """Sixty of one team stand aside at the site; two calls a second of another team have a cap of five."""
    own = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=200, tier=Tier.CALLERS)
    site = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=100)
    world = World({"site": site, "team a: calls in progress": SLOTS_OF_A, "team b: calls": own})
    taking = {
        "a": (rung("t", route("k", (("site", 1, 0), ("team a: calls in progress", 0, 1)), ())),),
        "b": (rung("t", route("k", (("site", 1, 0), ("team b: calls", 1, 0)), ())),),
    }
    for number in range(60):
        world.call(f"a{number}", lasts(600_000), rungs=taking["a"], agent=f"a{number}", after_ms=1 + number)
    started_ms = world.time.now_ms() + 5_000
    calls = [
        world.call(f"b{n}", lasts(30), rungs=taking["b"], agent=f"b{n}", after_ms=5_000 + 1_000 * (n // 2))
        for n in range(28)
    ]
    world.time.run(started_ms + 30_000)
    sent_ms = {name: at_ms for name, _, _, at_ms in world.wire.seen}
    assert max(sent_ms[call.id] - call.arrived_ms for call in calls) <= 500
