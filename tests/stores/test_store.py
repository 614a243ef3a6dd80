"""The store around the script, against a real server: every operation, coalescing, other gates, other lines."""

import asyncio

import pytest
from gates import ask, asked, opened

from eventually import eventually
from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import Usage
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.stores.valkey.store import ValkeyStore
from swarmgate.stores.valkey.wire import BadOperation

pytestmark = pytest.mark.usefixtures("patient")
COUNTER = Limits(BudgetKind.COUNTER, burst=100, window_ms=86_400_000, slices=24)
LARGER = Limits(BudgetKind.COUNTER, burst=500, window_ms=86_400_000, slices=24, revision=2)
SLOTS = Limits(BudgetKind.LEASES, burst=3)


@pytest.fixture(autouse=True)
def empty(server):
    server.client.flushall()


async def remaining(store, budget):
    return (await asked(store, ask("probe", (budget, 10**9, 0)))).blockers[0].remaining


async def revised(store, *what):
    answer = asyncio.get_running_loop().create_future()
    store.revise(*what, answer.set_result)
    reply = await answer
    return reply.done, reply.revision


def test_what_is_taken_settled_renewed_and_released(server):
    async def main():
        async with opened(server.url, c=COUNTER, s=SLOTS) as store:
            first = await asked(store, ask("x", ("c", 10, 20), ("s", 0, 3)))
            assert isinstance(first, Granted)
            assert await remaining(store, "c") == 70
            store.renew("x", ("c", "s"), 60_000)
            blocked = await asked(store, ask("y", ("s", 0, 1)))
            assert blocked.kind is BlockKind.EVENT
            assert blocked.certain_ms >= first.now_ms + 60_000
            store.settle("x", (Usage("c", 20, 25), Usage("s", 3, 0)), last=True)
            assert await remaining(store, "c") == 65
            assert store.debt_units == 5
            await asked(store, ask("z", ("c", 0, 5), ("s", 0, 3)))
            store.release("z", ("c", "s"))
            assert await remaining(store, "c") == 65
            assert await remaining(store, "s") == 3

    asyncio.run(main())


def test_a_birth_begins_with_the_connection_not_with_the_first_call(server):
    async def main():
        async with opened(server.url, s=Limits(BudgetKind.LEASES, burst=1, lease_ms=60_000)) as store:
            await eventually(lambda: store.births == 1)
            born_ms = int(server.client.hget("{sg:d}", "birth_ms"))
            cold = await asked(store, ask("x", ("s", 0, 1)))
            assert cold.not_before_ms == store.birth_ms + 60_000 == born_ms + 60_000

    asyncio.run(main())


def test_a_place_in_line_is_kept_and_given_up(server):
    async def main():
        async with opened(server.url, s=SLOTS) as store:
            await asked(store, ask("x", ("s", 0, 3), lease_ms=60_000))
            waits = await asked(store, ask("y", ("s", 0, 1), waits=True))
            assert waits.lines == ("s",)
            assert (await asked(store, ask("z", ("s", 0, 1)))).depth == 1
            store.leave("y", waits.lines)
            assert (await asked(store, ask("z", ("s", 0, 1)))).depth == 0

    asyncio.run(main())


def test_a_revision_is_in_force_for_every_gate_and_survives_a_flush_here(server):
    async def main():
        async with opened(server.url, c=COUNTER) as store, opened(server.url, c=COUNTER) as other:
            assert await revised(store, "c", 9, LARGER) == (False, 1)
            assert await revised(store, "c", 1, LARGER) == (True, 2)
            assert await remaining(other, "c") == 500
            assert await revised(other, "c", 1, LARGER) == (False, 2)
            server.client.flushall()
            assert await remaining(store, "c") == 500

    asyncio.run(main())


def test_whoever_finds_a_budget_forgotten_says_so(server):
    """What callers were told of it no longer counts (seed runaway 619: they slept on)."""

    async def main():
        async with opened(server.url, c=COUNTER) as store:
            await remaining(store, "c")
            forgotten = []
            store.forgot = forgotten.append
            await remaining(store, "c")
            assert forgotten == []
            server.client.flushall()
            await remaining(store, "c")
            assert forgotten == [("c",)]

    asyncio.run(main())


def test_what_comes_while_a_script_is_in_flight_shares_the_next_one(server):
    async def main():
        async with opened(server.url, c=COUNTER) as store:
            await asked(store, ask("first", ("c", 0, 0)))
            server.client.config_resetstat()
            answers = await asyncio.gather(*[asked(store, ask(f"l{number}", ("c", 1, 0))) for number in range(200)])
            assert sum(isinstance(answer, Granted) for answer in answers) == 100
            calls = server.client.info("commandstats")["cmdstat_evalsha"]["calls"]
            assert calls <= 1 + 200 // 64 + 1

    asyncio.run(main())


def test_a_budget_that_was_never_defined_here_is_a_bug_that_is_named(server):
    async def main():
        async with opened(server.url, c=COUNTER) as store:
            with pytest.raises(KeyError, match="unknown"):
                store.take(None, ask("x", ("c", 1, 0), ("unknown", 1, 0)))
            with pytest.raises(BadOperation, match="cost"):
                store.take(None, ask("x", ("c", -1, 0)))
            store.settle("x", (Usage("unknown", 1, 1),), last=True)
            assert await remaining(store, "c") == 100

    asyncio.run(main())


def test_another_gate_that_knows_another_line_stands_in_the_budgets_own(server):
    def pooled(line):
        return Limits(BudgetKind.LEASES, burst=1, line=line)

    async def main():
        async with opened(server.url, k=pooled("pool")) as store, opened(server.url, k=pooled("")) as other:
            await asked(store, ask("x", ("k", 0, 1)))
            assert (await asked(other, ask("y", ("k", 0, 1), waits=True))).lines == ("pool",)

    asyncio.run(main())


def test_two_deployments_on_one_server_do_not_meet(server):
    async def main():
        async with (
            opened(server.url, deployment="one", c=COUNTER) as one,
            opened(server.url, deployment="two", c=COUNTER) as two,
        ):
            assert isinstance(await asked(one, ask("x", ("c", 100, 0))), Granted)
            assert isinstance(await asked(two, ask("x", ("c", 99, 0))), Granted)
            assert (await remaining(one, "c"), await remaining(two, "c")) == (0, 1)

    asyncio.run(main())


def test_a_name_that_would_leave_the_hash_tag_is_refused():
    for name in ("", "a}b", "{", "ä"):
        with pytest.raises(BadOperation, match="deployment"):
            ValkeyStore(["redis://127.0.0.1:1"], name, print)


def test_the_store_works_in_a_cluster(cluster):
    async def main():
        async with opened(cluster.url, c=COUNTER, s=SLOTS) as store:
            answers = await asyncio.gather(
                *[asked(store, ask(f"l{number}", ("c", 30, 0), ("s", 0, 1), waits=True)) for number in range(5)]
            )
            assert [type(answer) for answer in answers] == [Granted] * 3 + [Denied] * 2

    asyncio.run(main())


def test_a_bug_of_who_is_told_stops_nobody_else(server):
    async def main():
        heard = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
        async with opened(server.url, c=COUNTER) as store:
            tell = store.fire
            store.fire = lambda call, event: 1 / 0 if call == "bad" else tell(call, event)
            store.take("bad", ask("x", ("c", 1, 0)))
            assert isinstance(await asked(store, ask("y", ("c", 1, 0))), Granted)
        assert [type(bug) for bug in heard] == [ZeroDivisionError]

    asyncio.run(main())


def test_closing_answers_everybody(server):
    async def main():
        async with opened(server.url, c=COUNTER) as store:
            call = asyncio.get_running_loop().create_future()
            store.take(call, ask("x", ("c", 1, 0)))
        assert await call == StoreLost(Reason.GATE_STORE_CLOSED)
        assert await asked(store, ask("y", ("c", 1, 0))) == StoreLost(Reason.GATE_STORE_CLOSED)
        assert await revised(store, "c", 1, LARGER) == (False, 0)

    asyncio.run(main())
