"""P13: the kernel in Lua and the kernel in Python, told the same, answer the same and know the same."""

import pytest
from valkey_book import ScriptDecider, book_of

from swarmgate.core.book import Usage
from swarmgate.core.commands import Settle
from swarmgate.core.limits import EXACT
from swarmgate.core.operations import Define
from swarmgate.testing.decider import state_of
from swarmgate.testing.kit import LATER_MS, SLOTS, StoreChecks
from swarmgate.testing.twins import WORLD, Twins, run_twins

SHARED = {name: limits.line for name, limits in WORLD.items() if limits.line}


def machine(client):
    class Machine(Twins):
        def __init__(self):
            super().__init__()
            self.subject = ScriptDecider(client, SHARED)

        def state(self):
            return state_of(book_of(client, "twins"))

    return Machine


def test_llm_gateways_2_lua_and_python_decide_and_know_the_same(server):
    run_twins(machine(server.client), 25)


def test_and_so_they_do_in_a_cluster(cluster):
    run_twins(machine(cluster.client), 6)


@pytest.mark.seeds
def test_for_long(server):
    run_twins(machine(server.client), 3_000)


def test_a_place_for_which_nothing_is_left_to_count_is_no_hold(server):
    script = ScriptDecider(server.client, {}, "nothing")
    claims = [("absurd", EXACT * 9), ("late", 1), ("late", 0)]
    told = [Settle(lease, (Usage("s", 0, used),), last=not used) for lease, used in claims]
    for operations in ([Define("s", SLOTS)], *([one] for one in told)):
        script.decide(operations, LATER_MS)
    assert "late" not in book_of(server.client, "nothing").cells["s"].leases


class TestScript(StoreChecks):
    @pytest.fixture(autouse=True)
    def with_server(self, server):
        self.client = server.client

    def make(self):
        return ScriptDecider(self.client, {}, "kit")
