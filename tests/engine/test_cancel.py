"""
Cancel between any two events (design 2: P4, P9; reliability RB-16, RB-17, RB-19).

Each kind of life is lived once to count its events, then again for every k with the caller leaving, its time ending, or
a needless wake-up after the k-th event; a second call that waits behind it must be served as if nothing had happened.
"""

import pytest

from lives import LIVES, STORES, Run
from swarmgate.core.commands import End
from swarmgate.core.events import CLIENT_LEFT, DEADLINE_PASSED, WOKEN


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", LIVES)
def test_every_life_ends_clean(name, store):
    run = Run(name, store)
    run.world.check_clean()
    assert run.other.end is End.ANSWERED


@pytest.mark.parametrize("store", ["near", "far", "lost, then found"])
@pytest.mark.parametrize("name", LIVES)
@pytest.mark.parametrize("event", [CLIENT_LEFT, DEADLINE_PASSED, WOKEN], ids=lambda event: type(event).__name__)
def test_nothing_is_left_whatever_comes_between_two_events(name, store, event):
    whole = Run(name, store)
    for at, alone in enumerate(whole.alone):
        for first in (False,) if alone else (False, True):
            run = Run(name, store, at, event, first=first)
            run.world.check_clean()
            assert run.other.end is End.ANSWERED, (at, first)
            if event is WOKEN and "lost" not in store:  # there the number of questions decides
                assert run.call.end is whole.call.end, (at, first)
