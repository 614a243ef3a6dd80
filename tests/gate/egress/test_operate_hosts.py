"""What an operator changes at hosts: a policy's limit moves its learner too, and a pause outlasts what is learned."""

import asyncio

import pytest
from outside import FAST, stage, whole

from swarmgate.core.errors import BadInput
from swarmgate.core.lesson import CAP, RATE

TEXT = """
[egress]
presets = "off"
wait = "5s"

[policies.papers]
hosts = ["a.org"]
limits = ["60 per 60s"]
"""


def run(scene, text=TEXT):
    async def play():
        async with stage(text=text) as on:
            return await scene(on)

    return asyncio.run(play())


def limits_of(on, name):
    return on.gate.store.book.cells[name].limits


def budget_of(on):
    return next(name for name in on.gate.window.directory.published if name.startswith("papers"))


@pytest.mark.parametrize("called_before", [False, True])
def test_a_raised_limit_is_no_longer_held_by_what_was_learned_beside_it(called_before):
    async def scene(on):
        name = budget_of(on)
        if called_before:
            await on.get("http://a.org/")
        on.gate.operator.limit(name, 600)
        await on.get("http://a.org/")
        learned = limits_of(on, name + RATE)
        return learned.quota * 60_000 // learned.window_ms, on.gate.egress.hosts.lessons[name].learner.ceilings.rate

    assert run(scene) == (600, 600)


def test_a_lowered_limit_lowers_what_is_learned():
    async def scene(on):
        name = budget_of(on)
        await on.get("http://a.org/")
        on.gate.operator.limit(name, 30)
        return limits_of(on, name + RATE).quota * 60_000 // limits_of(on, name + RATE).window_ms

    assert run(scene) == 30


def test_a_paused_host_stays_paused_whatever_is_learned_of_it():
    async def scene(on):
        await on.get("http://d.io/")
        changes = on.gate.operator.pause("d.io")
        lesson = on.gate.egress.hosts.hosts[next(iter(on.gate.egress.hosts.hosts))].lessons["d.io"]
        on.gate.teacher.told(lesson, lesson.learner.told(1))
        paused = [limits_of(on, one.budget).paused for one in changes]
        on.gate.egress.hosts.tidy()
        with pytest.raises(BadInput, match="learned"):
            on.gate.operator.limit("d.io", 5)
        on.gate.operator.resume("d.io")
        return [one.budget for one in changes], paused, [limits_of(on, one.budget).paused for one in changes]

    names, paused, resumed = run(scene)
    assert sorted(names) == sorted(["d.io" + RATE, "d.io" + CAP])
    assert paused == [True, True]
    assert resumed == [False, False]


def test_an_owner_is_paused_and_bounded_as_one():
    """All hosts of a group stop at one word, those that are called for the first time too, and can be bounded together."""

    async def scene(on):
        urls = ("http://a.org/", "http://www.a.org/")
        before = (await on.get(urls[0])).status
        on.gate.operator.pause("group a.org")
        during = [(await on.get(url, x_swarmgate_wait="0s")).said["deferral"]["blocking"] for url in urls]
        on.gate.operator.resume("group a.org")
        on.gate.operator.limit("group a.org: concurrent", 1)
        held = on.gate.store.book.cells["group a.org: concurrent"].limits.burst
        return before, [[one["budget"] for one in blocking] for blocking in during], held

    before, (known, unknown), held = run(scene)
    assert (before, held) == (200, 1)
    assert known == unknown == ["group a.org: concurrent"]


@pytest.mark.parametrize("name", ["http://d.io", "d.io"])
def test_a_host_that_asked_for_too_long_a_pause_is_called_again_when_a_person_says_so(name):
    """Nobody else can: the pause outlives the gate, and a host may ask for a month by mistake."""
    answers = iter([whole(429, b"no", retry_after=2_000_000), whole()])

    async def scene():
        async with stage(lambda _hit: next(answers), text=FAST) as on:
            first, second = await on.get("http://d.io/"), await on.get("http://d.io/", x_swarmgate_wait="0s")
            on.gate.operator.resume(name)
            return first.status, second.said["code"], (await on.get("http://d.io/", x_swarmgate_wait="5s")).status

    assert asyncio.run(scene()) == (429, "target_stalled", 200)


def test_a_host_may_be_named_as_the_target_that_views_show():
    async def scene(on):
        await on.get("http://d.io/")
        await on.get("http://a.org/")
        paused = {one.budget for one in on.gate.operator.pause("http://d.io")}
        with pytest.raises(BadInput, match=r"papers: requests per 60s, .*name one of them"):
            on.gate.operator.pause("http://a.org")
        with pytest.raises(BadInput, match="lists what there is"):
            on.gate.operator.pause("nobody")
        return paused

    assert run(scene) == {"d.io" + RATE, "d.io" + CAP}


@pytest.mark.parametrize("name", ["d.io", "http://d.io", "https://D.io./x", "group d.io", "group ours"])
def test_a_host_or_group_can_be_paused_before_anybody_calls_it(name):
    async def scene(on):
        paused = on.gate.operator.pause(name)
        on.gate.egress.hosts.tidy()
        denied = await on.get("http://d.io/", x_swarmgate_wait="0s")
        other = (await on.get("http://b.org/")).status
        on.gate.operator.resume(name if "/x" not in name else "d.io")
        return paused, denied, other, (await on.get("http://d.io/")).status, on.world.hits

    text = TEXT.replace("[egress]", '[egress]\ngroups = { "d.io" = "ours" }') if "ours" in name else TEXT
    paused, denied, other, after, hits = run(scene, text)
    assert paused
    assert (denied.status, denied.said["code"]) == (429, "policy_paused")
    assert (other, after) == (200, 200)
    assert [hit.host for hit in hits] == ["b.org", "d.io"]


@pytest.mark.parametrize("name", ["nobody", "a..b", "group www.a.org", "group ", "http://", "."])
def test_what_is_no_host_and_no_group_is_not_paused(name):
    async def scene(on):
        before = dict(on.gate.window.directory.published)
        with pytest.raises(BadInput, match="lists what there is"):
            on.gate.operator.pause(name)
        return before == on.gate.window.directory.published

    assert run(scene)
