"""Every fault strikes a call in every state, and every promise holds all the same (reliability 3: coverage)."""

from collections import Counter
from typing import get_args

import pytest

import struck
from swarmgate.core.record import State
from swarmgate.lab.faults import FaultKind
from swarmgate.lab.sim import coverage
from swarmgate.lab.sim.verdicts import violations


@pytest.mark.parametrize("kind", get_args(FaultKind))
def test_a_fault_strikes_calls_in_every_state_and_no_promise_breaks(kind):
    for state in coverage.STATES:
        fault, world = coverage.aimed(kind, state)
        world.run()
        struck.count(world.weather.pairs)
        assert world.weather.pairs[kind, state], (fault, state)
        assert violations(world) == [], (fault, state)


def test_the_table_has_a_row_for_each_fault_and_tells_what_never_happened():
    pairs = Counter({("loss", State.SENDING): 1_234})
    rows = {kind: counts for kind, *counts in coverage.table(pairs)}
    assert rows["fault"] == ["connecting", "asking", "waiting", "sending", "relaying", "backoff"]
    assert rows["loss"] == ["0", "0", "0", "1,234", "0", "0"]
    assert len(coverage.never(pairs)) == len(coverage.PAIRS) - 1
    assert "loss x asking" in coverage.never(pairs)
