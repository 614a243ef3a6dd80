"""Who is held up at an earlier tier stands aside in later ones, and is served none the later (core/limits.py: Tier; design 4: Line)."""

from hypothesis import given, settings
from hypothesis import strategies as st
from test_line import CAP, ONE, START_MS, WAY, Crowd, ask, book, come_back, demands, granted

from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Granted
from swarmgate.core.book import Usage
from swarmgate.core.limits import BudgetKind, Limits


def test_who_waits_for_its_own_cap_keeps_no_target_idle():
    """One place or token at a time leaves nothing beside what is kept for a better ticket (reliability TI-07)."""
    made = book(site=Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=100), cap=CAP, way=WAY)
    wanted = ("site", 1, 0), ("way", 0, 1), ("cap", 0, 1)
    assert granted(made, ask("runs", *wanted), START_MS)
    kernel.settle(made, "runs", (Usage("way", 1, 0),), START_MS + 20, last=True)
    better = ask("better", *wanted)
    better = come_back(better, kernel.take(made, better, START_MS))
    started = 0
    for now_ms in range(START_MS + 1, START_MS + 10_000, 10):
        better = come_back(better, kernel.take(made, better, now_ms))
        lease = f"other-{now_ms}"
        if granted(made, ask(lease, ("site", 1, 0), ("way", 0, 1), waits=False), now_ms):
            kernel.settle(made, lease, (Usage("way", 1, 0),), now_ms + 20, last=True)
            started += 1
    assert started == 99
    kernel.settle(made, "runs", (Usage("cap", 1, 0),), now_ms, last=True)
    assert not granted(made, better, now_ms)
    assert granted(made, come_back(better, kernel.take(made, better, now_ms)), now_ms + 100)


def test_who_waits_for_a_target_keeps_its_own_cap():
    """Else two that wait for each other's leavings would take turns for ever: places are kept from the caller's own on."""
    made = book(slot=ONE, cap=CAP)
    assert granted(made, ask("stranger", ("slot", 0, 1)), START_MS)
    better = ask("better", ("cap", 0, 1), ("slot", 0, 1))
    assert granted(made, ask("sibling", ("cap", 0, 1)), START_MS)
    better = come_back(better, kernel.take(made, better, START_MS))
    kernel.settle(made, "sibling", (Usage("cap", 1, 0),), START_MS + 1, last=True)
    better = come_back(better, kernel.take(made, better, START_MS + 2))
    assert not granted(made, ask("younger sibling", ("cap", 0, 1)), START_MS + 3)
    kernel.settle(made, "stranger", (Usage("slot", 1, 0),), START_MS + 4, last=True)
    assert not granted(made, ask("other stranger", ("slot", 0, 1)), START_MS + 5)
    assert granted(made, better, START_MS + 6)


def test_the_least_urgent_run_beside_who_waits_for_its_own_cap():
    made = book(site=Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=100), cap=CAP)
    assert granted(made, ask("runs", ("cap", 0, 1), ("site", 1, 0)), START_MS)
    assert not granted(made, ask("better", ("cap", 0, 1), ("site", 1, 0)), START_MS)
    assert granted(made, ask("background", ("site", 1, 0), rank=2), START_MS + 100)


@settings(max_examples=60, deadline=None)
@given(demands(), st.lists(st.tuples(demands(), st.integers(0, 2)), min_size=1, max_size=6), st.integers(1, 25))
def test_whoever_keeps_asking_is_served_whatever_the_less_urgent_take(wanted, rivals, lasts_ms):
    """They take all they are granted, ever again; each reservation ends. Nobody is kept from his turn by stepping aside."""
    crowd = Crowd()
    better = ask("better", *wanted, rank=0)
    denied = None
    for number in range(1_500):
        for index, (taken, rank) in enumerate(rivals):
            lease = f"{index}-{number}"
            if granted(crowd.book, ask(lease, *taken, rank=max(1, rank), waits=False), crowd.now_ms):
                crowd.running.append((crowd.now_ms + lasts_ms, lease, taken, 1))
        reply = kernel.take(crowd.book, better, crowd.now_ms)
        if isinstance(reply, Granted):
            return
        denied, better = reply, come_back(better, reply)
        crowd.pass_time(crowd.now_ms + 1)
    assert denied.kind is BlockKind.NEVER


def test_any_number_that_stand_aside_hide_nobody_who_waits_here():
    """Four tickets of each of many agents at their team's cap, and behind them a call that needs more than the next token."""
    site = Limits(BudgetKind.LEVEL, burst=6, quota=1, window_ms=100)
    made = book(site=site, cap=CAP)
    assert granted(made, ask("runs", ("cap", 0, 1), ("site", 6, 0)), START_MS)
    for number in range(300):
        assert not granted(made, ask(f"aside-{number}", ("cap", 0, 1), ("site", 1, 0)), START_MS)
    large = ask("large", ("site", 4, 0))
    large = come_back(large, kernel.take(made, large, START_MS))
    assert not granted(made, ask("less urgent", ("site", 1, 0), rank=2), START_MS + 100)
    assert granted(made, large, START_MS + 400)
