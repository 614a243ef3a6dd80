"""Hosts that change what they take: found at the next answer where they say so, within three windows where not."""

import asyncio
from collections import deque

import pytest
from outside import stage, whole

from swarmgate import config
from swarmgate.core.commands import Intent, Note
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.record import Call
from swarmgate.core.target import parse_target
from swarmgate.core.waiting import Room
from swarmgate.engine.memory_journal import MemoryJournal
from swarmgate.engine.teacher import Teacher
from swarmgate.gate.egress.hosts import Hosts
from swarmgate.stores.memory.store import MemoryStore
from swarmgate.wiring.egress import budgets_of, egress_plan

CROSSREF = '[policies.c]\nhosts = ["a.org"]\nlimits = ["50 per 1s", "5 concurrent"]\n'
GITHUB = '[policies.g]\nhosts = ["a.org"]\nlimits = ["5_000 per 1h"]\n'


def run(act, text, reply=lambda _hit: whole()):
    async def whole_run():
        async with stage(reply, text=text) as on:
            return await act(on)

    return asyncio.run(whole_run())


def learned(on, name):
    cells = on.gate.store.book.cells
    return {
        key.removeprefix(name): cell.limits for key, cell in cells.items() if key.startswith(name) and "learned" in key
    }


@pytest.mark.parametrize(
    ("text", "name", "fields", "most_per_ms"),
    [
        (CROSSREF, "c: requests per 1s", {"x_rate_limit_limit": 5, "x_rate_limit_interval": "1s"}, 5 / 1_000),
        (
            CROSSREF,
            "c: requests per 1s",
            {"ratelimit": '"a";r=9;t=5', "ratelimit_policy": '"a";q=300;w=60'},
            5 / 1_000,
        ),
        (GITHUB, "g: requests per 3600s", {"x_ratelimit_limit": 60, "x_ratelimit_remaining": 9}, 60 / 3_600_000),
    ],
)
def test_what_a_host_says_is_in_force_at_the_next_admission(text, name, fields, most_per_ms):
    async def act(on):
        await on.get("http://a.org/")
        return learned(on, name)[":learned:rate"]

    limits = run(act, text, lambda _hit: whole(**fields))
    assert limits.revision == 2
    assert limits.quota / limits.window_ms <= most_per_ms


def test_a_host_that_says_more_than_the_operator_is_not_believed():
    async def act(on):
        await on.get("http://a.org/")
        return learned(on, "c: requests per 1s")[":learned:rate"]

    limits = run(act, CROSSREF, lambda _hit: whole(x_rate_limit_limit=150, x_rate_limit_interval="1s"))
    assert (limits.revision, limits.quota / limits.window_ms * 1_000) == (1, 50)


def test_a_limit_on_what_is_in_flight_is_kept_too():
    async def act(on):
        await on.get("http://a.org/")
        return learned(on, "c: requests per 1s")[":learned:cap"]

    assert run(act, CROSSREF, lambda _hit: whole(x_concurrency_limit=1)).burst == 1


def test_what_is_believed_of_a_stated_limit_is_shown_once_it_is_narrower():
    async def act(on):
        before = set(on.gate.published)
        await on.get("http://a.org/")
        own = [name for name in set(on.gate.published) - before if ":learned:" in name]
        return {name: (on.gate.published[name].amount, on.gate.published[name].window_ms) for name in own}

    said = {"x_rate_limit_limit": 5, "x_rate_limit_interval": "1s"}
    assert run(act, CROSSREF, lambda _hit: whole(**said)) == {"c: requests per 1s:learned:rate": (4, 1_000)}
    assert run(act, CROSSREF) == {}


def test_nothing_left_means_a_pause_until_the_reset():
    async def act(on):
        first = await on.get("http://a.org/")
        second = await on.get("http://a.org/")
        other = await on.get("http://b.org/")
        return first, second, other, len(on.world.hits)

    fields = {"x_ratelimit_limit": 60, "x_ratelimit_remaining": 0, "x_ratelimit_reset": 40}
    first, second, other, hits = run(act, GITHUB, lambda hit: whole(**(fields if hit.host == "a.org" else {})))
    assert (first.status, second.status, other.status, hits) == (200, 429, 200, 2)
    assert second.said["code"] == "target_backoff"
    assert 38_000 < second.said["deferral"]["not_before_ms"] <= 40_000


def test_no_page_holds_a_host_for_longer_than_an_hour_by_saying_that_nothing_is_left():
    async def act(on):
        return [
            (await on.get("http://a.org/")).status,
            (await on.get("http://a.org/")).said["deferral"]["not_before_ms"],
        ]

    fields = {"ratelimit_limit": "1, 1;w=2678400", "ratelimit_remaining": 0, "ratelimit_reset": 2_678_400}
    status, not_before_ms = run(act, CROSSREF, lambda _hit: whole(**fields))
    assert status == 200
    assert not_before_ms <= 3_600_000


def test_a_refusal_becomes_a_deferral_that_says_whose_word_it_is():
    async def act(on):
        return await on.get("http://a.org/"), await on.get("http://a.org/"), len(on.world.hits), on.ends

    first, second, hits, ends = run(act, CROSSREF, lambda _hit: whole(429, b"slow down", retry_after=30))
    assert (first.status, second.status, hits) == (429, 429, 1)
    assert first.said["deferral"]["reason"] == "target_rate"
    assert first.said["deferral"]["not_before_ms"] >= 30_000
    assert "received-status=429" in first.headers["proxy-status"]
    assert "received-status" not in second.headers["proxy-status"]
    assert ends == ["deferred", "deferred"]


class Clock:
    def __init__(self):
        self.at_ms = 10**9

    def now_ms(self):
        return self.at_ms


WINDOWS = 14  # the limit falls after two of them


class Sliding:
    """What Stripe's tests call a server: so many per sliding window, a 429 without a word beyond."""

    def __init__(self, limit, window_ms):
        self.limit, self.window_ms, self.hits = limit, window_ms, deque()

    def answer(self, now_ms):
        self.forget(now_ms)
        if len(self.hits) >= self.limit:
            return classify(Signal(429))
        self.hits.append(now_ms)
        return classify(Signal(200))

    def forget(self, now_ms):
        while self.hits and self.hits[0] <= now_ms - self.window_ms:
            self.hits.popleft()


class Fixed(Sliding):
    """As GitHub counts: windows that stand on the clock, all of it free again at once."""

    def forget(self, now_ms):
        if self.hits and self.hits[0] // self.window_ms != now_ms // self.window_ms:
            self.hits.clear()


@pytest.mark.parametrize(
    ("kind", "before", "after", "window_ms"),
    [
        (Sliding, 100, 60, 60_000),
        (Sliding, 100, 50, 60_000),
        (Sliding, 600, 400, 60_000),
        (Fixed, 100, 60, 60_000),
        (Fixed, 600, 300, 60_000),
        (Sliding, 50, 30, 10_000),
        (Fixed, 50, 25, 10_000),
    ],
)
def test_a_lower_limit_is_found_within_three_windows_and_never_exceeds_the_ceiling(kind, before, after, window_ms):
    """The gate's own hosts, rings, teacher and store on virtual time; a caller that always has work."""
    clock, tick_ms = Clock(), window_ms // 600
    plan = egress_plan(
        config.parse(f'[policies.s]\nhosts = ["a.org"]\nlimits = ["{before} per {window_ms}ms"]\nheadroom = 100\n', {})
    )
    answers = []
    store = MemoryStore(clock, lambda _call, answer: answers.append(answer))
    store.book.birth_ms = 0
    for one in budgets_of(plan.policies).values():
        for name, limits in one.limits():
            store.define(name, limits)
    hosts = Hosts(plan, clock, store.define, store.forget, {})
    teacher = Teacher(MemoryJournal(), store, clock)
    rung = hosts.place(parse_target("http://a.org/").target, "GET", "/").rung
    (route,) = rung.routes.values()
    target = kind(before, window_ms)
    refused, accepted, changed_ms = [], [], 0
    for tick in range(WINDOWS * window_ms // tick_ms):
        clock.at_ms += tick_ms
        if tick == 2 * window_ms // tick_ms:
            target.limit, changed_ms = after, clock.at_ms
        if not rung.ring.candidates(clock.at_ms):
            continue
        call = Call(f"c{tick}", (rung,), Room(), rank=1, arrived_ms=clock.at_ms)
        take = (call.id, call.id, 1, call.score, (route.demands(0, 0),), 60_000, (), False)
        store.take(call, store_take(take))
        if type(answers.pop()).__name__ != "Granted":
            continue
        call.sent_ms = clock.at_ms
        teacher.intent(call, Intent(1))
        outcome = target.answer(clock.at_ms)
        rung.ring.observe("", outcome, call.sent_ms, clock.at_ms)
        teacher.note(call, Note(1, None, 0, outcome))
        store.settle(call.id, tuple((name, 0, 0) for name in route.budgets()), last=True)
        (accepted if outcome.kind == "ok" else refused).append(clock.at_ms)
        assert all(one.learner.rate_micro <= before * MICRO for one in rung.lessons)
    late = [at_ms for at_ms in refused if at_ms > changed_ms + 3 * window_ms]
    sends = [at_ms for at_ms in accepted if at_ms > changed_ms + 3 * window_ms]
    assert not [at_ms for at_ms in refused if at_ms < changed_ms]
    assert len(late) <= 0.03 * (len(sends) + len(late))  # found: what is left are probes
    assert len(sends) >= 0.75 * after * (WINDOWS - 5)  # and it is used


def store_take(fields):
    from swarmgate.core.book import Take

    return Take(*fields)
