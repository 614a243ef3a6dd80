"""Another configuration while hosts are called: policies, the pace of unknown hosts, and what an operator said meanwhile."""

import asyncio

import pytest
from outside import HOSTS, stage

from swarmgate.config import parse
from swarmgate.core.errors import BadInput
from swarmgate.core.lesson import RATE
from swarmgate.core.limits import BadLimit
from swarmgate.gate.reload import kinds, reload
from swarmgate.wiring import plan

PAPERS = "papers: requests per 60s"
TEXT = """
[egress]
presets = "off"
wait = "0s"
unknown = "600 per 60s"
ceiling = "6_000 per 60s"

[policies.papers]
hosts = ["a.org"]
limits = ["600 per 60s"]
"""


def again(on, text):
    pins = "".join(f'"{host}" = "127.0.0.1:9"\n' for host in HOSTS)  # a pin is read at the start
    book = on.gate.store.book
    return reload(on.gate, book, plan(parse(f"{text}\n[resolve]\n{pins}", {}), kinds(book)))


def run(scene, text=TEXT):
    async def play():
        async with stage(text=text) as on:
            return await scene(on)

    return asyncio.run(play())


def rate_of(on, name):
    limits = on.gate.store.book.cells[name].limits
    return limits.quota * 60_000 // limits.window_ms


async def burst(on, url, most=40):
    """How many calls pass at once."""
    return [(await on.get(url)).status for _ in range(most)].count(200)


def test_a_policy_of_another_amount_holds_for_the_next_call_and_what_was_used_stays_used():
    async def scene(on):
        await on.get("http://a.org/")
        done = again(on, TEXT.replace('["600 per', '["60 per'))
        assert set(done.changed) == {PAPERS, f"{PAPERS}:way"}
        assert on.gate.store.book.cells[PAPERS].level > 0
        assert on.gate.published[PAPERS].amount == 60
        assert (rate_of(on, PAPERS), rate_of(on, PAPERS + RATE)) == (48, 60)
        return await burst(on, "http://a.org/")

    assert run(scene) <= 10  # a burst of the new limit, and what its rate lets through meanwhile


def test_a_host_that_a_policy_names_from_now_on_takes_from_it():
    async def scene(on):
        assert (await on.get("http://b.org/")).status == 200
        again(on, TEXT + '\n[policies.other]\nhosts = ["b.org"]\nlimits = ["3 per 60s"]\n')
        found = [(await on.get("http://b.org/")).status for _ in range(6)]
        blocking = (await on.get("http://b.org/")).said["deferral"]["blocking"]
        return found.count(200), "other: requests per 60s" in {one["budget"] for one in blocking}

    assert run(scene) == (3, True)


def test_a_policy_that_is_gone_is_shown_no_more_and_its_host_begins_like_any_other():
    async def scene(on):
        await on.get("http://a.org/")
        again(on, TEXT.partition("[policies")[0])
        assert (await on.get("http://a.org/")).status == 200
        return on.gate.window.directory.names

    names = run(scene)
    assert PAPERS not in names
    assert "a.org" + RATE in names


def test_a_ceiling_bounds_what_was_learned_already():
    async def scene(on):
        await on.get("http://b.org/")
        before = rate_of(on, "b.org" + RATE)
        again(on, TEXT.replace("600 per 60s", "60 per 60s").replace("6_000", "60"))
        assert (await on.get("http://d.io/")).status == 200
        return before, rate_of(on, "b.org" + RATE), rate_of(on, "group b.org" + RATE), rate_of(on, "d.io" + RATE)

    assert run(scene) == (480, 60, 120, 48)


def test_hosts_that_were_called_are_still_seen():
    async def scene(on):
        for url in ("http://a.org/", "http://b.org/"):
            await on.get(url)
        seen = [(await on.caller.ask("GET", "/swarmgate/v1/budgets")).said["targets"]]
        again(on, TEXT.partition("[policies")[0])
        seen.append((await on.caller.ask("GET", "/swarmgate/v1/budgets")).said["targets"])
        return [{one["target"]: one["budgets"] for one in targets} for targets in seen]

    before, after = run(scene)
    assert before.keys() == after.keys() == {"http://a.org", "http://b.org"}
    assert PAPERS in before["http://a.org"]
    assert after["http://a.org"] == [name.replace("b.org", "a.org") for name in after["http://b.org"]]


@pytest.mark.parametrize(("setting", "told"), [("deny", 403), ("allow", 200)])
def test_who_may_be_called_is_as_the_file_says_now(setting, told):
    async def scene(on):
        found = [await on.get("http://b.org/")]
        again(on, TEXT.replace("[egress]", f'[egress]\n{setting} = ["b.org"]'))
        found += [await on.get(f"http://{host}/", x_swarmgate_wait="5s") for host in ("b.org", "d.io")]
        return tuple(one.status for one in found)

    assert run(scene) == (200, told, 403 if setting == "allow" else 200)


def test_an_operators_limit_stands_over_the_file_until_both_say_the_same():
    async def scene(on):
        on.gate.operator.limit(PAPERS, 300)
        done = again(on, TEXT.replace('["600 per', '["400 per'))
        rows = (await on.caller.ask("GET", "/swarmgate/v1/budgets?target=papers")).said["budgets"]
        assert [(row["limit"], row["file"]) for row in rows] == [(300, {"limit": 400, "window_ms": 60_000})]
        assert (done.standing, done.changed, rate_of(on, PAPERS)) == ((PAPERS,), {}, 240)
        assert done.plan.published[PAPERS].amount == 300
        assert again(on, TEXT.replace('["600 per', '["300 per')).standing == ()
        assert on.gate.window.directory.file == {}
        done = again(on, TEXT)
        return done.standing, rate_of(on, PAPERS)

    assert run(scene) == ((), 480)


def test_an_operator_who_says_what_the_file_says_stands_over_nothing():
    async def scene(on):
        on.gate.operator.limit(PAPERS, 300)
        on.gate.operator.limit(PAPERS, 600)
        return on.gate.window.directory.file, again(on, TEXT).standing

    assert run(scene) == ({}, ())


@pytest.mark.parametrize(
    ("good", "bad", "error", "names"),
    [('["600 per', '["1 per', BadLimit, PAPERS), ('["600 per 60s"]', '["600 per 2h"]', None, "")],
)
def test_what_cannot_change_changes_nothing_and_is_named(good, bad, error, names):
    async def scene(on):
        await on.get("http://a.org/")
        before = {name: cell.limits for name, cell in on.gate.store.book.cells.items()}
        if error is None:  # another window is another budget, not another kind of the same
            return again(on, TEXT.replace(good, bad)).changed.keys()
        with pytest.raises((BadInput, BadLimit)) as caught:
            again(on, TEXT.replace(good, bad).replace("6_000", "60_000"))
        assert {name: cell.limits for name, cell in on.gate.store.book.cells.items()} == before
        assert on.gate.egress.hosts.plan.settings.pace.ceiling == 6_000
        return caught.value.field

    found = run(scene)
    assert names == found if error else "papers: requests per 7200s" in found
