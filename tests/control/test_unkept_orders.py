"""A limit that is in force is a revision in the journal, whatever a full disk does to the files beside it (P12, LG-03)."""

import errno
from types import SimpleNamespace

import pytest

from swarmgate.control.orders import DataOrders
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.gate.operate import Change
from swarmgate.stores.journal import rows
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.journal.in_force import InForce, Limit

LIMITS = Limits(BudgetKind.LEVEL, burst=10, quota=10, window_ms=1_000, revision=1)
PAUSED = Limits(BudgetKind.LEVEL, burst=10, quota=10, window_ms=1_000, revision=2, paused=True)


class Told:
    """A gate whose operator pauses its only budget, and a journal that remembers."""

    def __init__(self, folder):
        self.rows = []
        self.policy = 1
        self.in_force = InForce(folder, 0)
        self.in_force.adopt({"up": Limit(LIMITS, None, "up", "")}, ("configuration", ""), 0)
        self.orders = orders = object.__new__(DataOrders)
        orders._limits = {}
        orders._in_force = self.in_force
        orders._journal = self
        orders._audit = Audit(folder)
        orders._gate = SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 5))
        orders._operator = SimpleNamespace(pause=lambda _name: [Change("up", "up", PAUSED, None)])

    def next(self):
        return len(self.rows) + 1, 5

    def add(self, row):
        self.rows.append(row)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_pause_on_a_full_disk_is_told_to_the_journal_and_the_audit(tmp_path, monkeypatch, is_full):
    told = Told(tmp_path)
    if is_full:

        def full(_ahead=0):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(told.in_force, "save", full)
        with pytest.raises(BadInput, match="what was done holds"):
            told.orders.pause({"target": "up", "author": "ann", "reason": "they asked"})
    else:
        told.orders.pause({"target": "up", "author": "ann", "reason": "they asked"})
    (row,) = told.rows
    assert isinstance(row, rows.Revision)
    assert (row.budget, row.revision, row.paused, row.author) == ("up", 2, True, "ann")
    assert told.policy == row.policy
    (change,) = Audit(tmp_path).read().changes
    assert (change.what, change.who) == ("paused", "ann")
