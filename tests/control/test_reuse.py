"""How often a target's pool had a connection ready, and how many it keeps, as metrics are told."""

from types import SimpleNamespace

import pytest

from swarmgate.control.orders import DataOrders
from swarmgate.http1.upstreams import Origin

HERE, THERE = Origin("http", "a", 80), Origin("http", "b", 80)


@pytest.mark.parametrize(
    ("uses", "dials", "told"),
    [(100, 9, {"here": 910}), (1, 1, {"here": 0}), (1, 3, {"here": 0}), (0, 2, {})],
    ids=["usual", "first use", "dials nobody used", "never used"],
)
def test_pools_that_were_used_are_told(uses, dials, told):
    orders = object.__new__(DataOrders)
    demand = SimpleNamespace(size=13, mean_permille=9_500)
    pools = {HERE: SimpleNamespace(pool=SimpleNamespace(uses=uses, dials=dials), demand=demand)}
    targets = {"here": SimpleNamespace(origin=HERE), "there": SimpleNamespace(origin=THERE)}
    orders._gate = SimpleNamespace(upstreams=SimpleNamespace(hosts=pools), targets=targets)
    assert orders._pools() == {
        name: {"reused_permille": permille, "size": 13, "mean_permille": 9_500} for name, permille in told.items()
    }
