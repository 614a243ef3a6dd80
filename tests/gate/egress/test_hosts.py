"""Which budgets a request takes from: spellings, schemes, subdomains, policies, and a bounded number of hosts."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import stage, to

from eventually import eventually
from records import Beside, a_call
from swarmgate import config
from swarmgate.core.compiler import WAY
from swarmgate.core.target import parse_target
from swarmgate.gate.egress.hosts import IDLE_MS, ROOM_EVERY_MS, Hosts, joint
from swarmgate.stores.memory.store import MemoryStore
from swarmgate.wiring.egress import budgets_of, egress_plan

TEXT = """
[egress]
most_targets = 40
most_per_group = 4
presets = "off"
[policies.sec]
hosts = ["www.sec.gov", "data.sec.gov", "*.deep.sec.gov"]
limits = ["10 per 1s", "3 concurrent"]
[policies.sec.classes.search]
paths = ["/search*"]
limits = ["1 per 1s"]
[policies.owner]
domains = ["owned.org"]
limits = ["100 per 1m"]
[policies.inner]
domains = ["inner.owned.org"]
limits = ["50 per 1m"]
[policies.single]
hosts = ["one.owned.org", "one.inner.owned.org"]
limits = ["10 per 1m"]
[policies.volume]
domains = ["bytes.org"]
limits = ["1_000_000 bytes per 1m"]
[policies.watched]
hosts = ["watched.org"]
limits = ["1 per 1s"]
mode = "shadow"
"""


class Clock:
    def __init__(self):
        self.at_ms = 10**9

    def now_ms(self):
        return self.at_ms


def hosts(text=TEXT, kept=None):
    clock = Clock()
    plan = egress_plan(config.parse(text, {}))
    store = MemoryStore(clock, lambda *_: None)
    store.book.birth_ms = 0
    for one in budgets_of(plan.policies).values():
        for name, limits in one.limits():
            store.define(name, limits)
    published = {}
    made = Hosts(plan._replace(kept=kept or {}), clock, store.define, store.forget, published)
    return Beside(made, clock=clock, store=store, published=published)


def budgets(made, url, method="GET"):
    parsed = parse_target(url)
    place = made.place(parsed.target, method, parsed.path)
    place.host.is_met = True
    (route,) = place.rung.routes.values()
    taken = [name for name, *_ in route.fixed if not name.endswith(WAY)]
    assert all(name in made.store.book.cells for name, *_ in route.fixed)
    return taken


SAME = [
    "https://x.org/",
    "HTTPS://X.ORG:443/a?b",
    "http://x.org/",
    "https://x.org./",
    "https://u:p@x.org/",
    "https://%78.org/",
]


@pytest.mark.parametrize("url", SAME)
def test_every_spelling_of_a_host_and_both_schemes_share_its_budgets(url):
    made = hosts()
    assert budgets(made, url) == budgets(made, SAME[0])
    assert budgets(made, url)[0] == "x.org:learned:rate"


def test_a_host_and_its_group_are_both_charged():
    made = hosts()
    first, second = budgets(made, "https://a.x.org/"), budgets(made, "https://b.x.org/")
    assert set(first) & set(second) == {
        "group x.org" + what for what in (":learned:rate", ":learned:cap", ": concurrent")
    }
    assert budgets(made, "https://a.github.io/")[2] == "group a.github.io:learned:rate"  # owners of their own


def test_what_a_policy_counts_has_its_budgets_and_no_pace_of_ours():
    made = hosts()
    assert budgets(made, "https://www.sec.gov/") == budgets(made, "https://data.sec.gov/x")
    assert budgets(made, "https://a.b.deep.sec.gov/") == budgets(made, "https://www.sec.gov/")
    taken = budgets(made, "https://www.sec.gov/search?q")
    assert taken[:3] == ["sec: requests per 1s", "sec: concurrent", "sec#search: requests per 1s"]
    assert taken[3:5] == ["sec#search: requests per 1s:learned:rate", "sec#search: requests per 1s:learned:cap"]
    assert taken[5:] == ["group sec.gov: concurrent"]


def stated(made, url):
    return [name for name in budgets(made, url) if ":learned:" not in name]


def test_what_is_stated_for_a_domain_holds_for_every_host_and_domain_within():
    made = hosts()
    owner, inner, single = (f"{name}: requests per 60s" for name in ("owner", "inner", "single"))
    places = "group owned.org: concurrent"
    assert stated(made, "https://a.owned.org/") == [owner, places]
    assert stated(made, "https://one.owned.org/") == [single, owner, places]
    assert stated(made, "https://a.inner.owned.org/") == [inner, owner, places]
    assert stated(made, "https://one.inner.owned.org/") == [single, inner, owner, places]


def test_a_domain_learns_from_its_hosts():
    made = hosts()
    assert "owner: requests per 60s:learned:rate" in budgets(made, "https://a.owned.org/")
    taught = next(host for host in made.hosts.values()).rungs
    assert [lesson.target for rung in taught.values() for lesson in rung.lessons] == ["owner: requests per 60s"]


def test_a_domain_whose_requests_nobody_counts_keeps_the_cautious_pace_of_its_group():
    taken = budgets(hosts(), "https://a.bytes.org/")
    assert {"a.bytes.org:learned:rate", "group bytes.org:learned:rate"} <= set(taken)


def test_known_and_unknown_hosts_are_charged_to_their_group_and_do_not_hold_each_other_up():
    made = hosts()
    known, unknown = budgets(made, "https://www.sec.gov/"), budgets(made, "https://files.sec.gov/")
    learned = [f"{name}:learned:{what}" for name in ("files.sec.gov", "group sec.gov") for what in ("rate", "cap")]
    assert unknown == [*learned, "group sec.gov: concurrent"]
    assert set(known) & set(unknown) == {"group sec.gov: concurrent"}
    assert [name for name in (*known, *unknown) if made.is_open(name)] == ["group sec.gov: concurrent"] * 2


def test_what_an_operator_said_of_a_group_outlasts_its_idle_hosts():
    made = hosts()
    name = "group owned.org: concurrent"
    budgets(made, "https://a.owned.org/")
    made.published[name] = replace(made.published[name], amount=3)
    made.clock.at_ms += 2 * IDLE_MS
    made.tidy()
    assert not made.hosts
    assert not made.is_open(name)
    assert name in made.store.book.cells
    assert made.published[name].amount == 3


def test_a_policy_that_only_watches_holds_nobody_back():
    assert budgets(hosts(), "https://watched.org/")[0] == "watched.org:learned:rate"


def test_a_thousand_subdomains_are_bounded_and_hit_one_group():
    made = hosts()
    seen = [budgets(made, f"https://n{number}.evil.org/") for number in range(1_000)]
    assert {names[2] for names in seen} == {"group evil.org:learned:rate"}
    assert len({names[0] for names in seen}) == 5  # four of their own, one for the rest
    assert len(made.store.book.cells) < 40


def test_any_number_of_hosts_is_bounded():
    made = hosts()
    for number in range(2_000):
        budgets(made, f"https://n{number}.org/")
    assert len(made.hosts) == 41
    assert len(made.store.book.cells) < 240
    assert budgets(made, "https://more.org/")[0] == "other://*".partition("://")[2] + ":learned:rate"


def test_what_is_remembered_of_any_number_of_hosts_is_bounded():
    made = hosts()
    for number in range(2_000):
        for host in (f"h{number}.org", f"h{number}.same.org"):
            made.place(parse_target(f"https://{host}/").target, "GET", "/", "red").host.is_met = True
    assert len(made.met) < 800
    assert "group *:learned:rate" in budgets(made, "https://one-more.org/")


def test_hosts_that_share_a_budget_share_no_pause_and_its_map_is_bounded():
    made = hosts()

    def place(host):
        found = made.place(parse_target(f"https://{host}/").target, "GET", "/")
        found.host.is_met = True
        return found

    for number in range(60):
        place(f"h{number}.org")
    loud, other = place("loud.org"), place("other.org")
    assert loud.rung.routes == other.rung.routes
    made.pause(loud, made.clock.at_ms + 3_600_000)
    made.replace(made.plan)
    assert place("loud.org").rung.ring.paused_until_ms > made.clock.at_ms
    assert place("other.org").rung.ring.paused_until_ms <= made.clock.at_ms
    for number in range(1_000):
        place(f"more{number}.org")
    assert len(list(made.rungs())) < 400


def test_idle_hosts_make_room_and_what_was_learned_of_them_comes_back():
    made = hosts()
    for number in range(30):
        budgets(made, f"https://n{number}.org/")
    made.store.book.cells["n1.org:learned:rate"].level = 10**12  # it is busy
    lesson = made.hosts[next(iter(made.hosts))].lessons["n0.org"]
    lesson.changes.append((0, lesson.learner.told(12, 60_000)))
    made.show(lesson)
    made.pause(made.place(parse_target("https://n3.org/").target, "GET", "/"), made.clock.at_ms + 2 * IDLE_MS)
    made.clock.at_ms += IDLE_MS + 1
    budgets(made, "https://n2.org/")
    made.tidy()
    assert {host.placed.host for host in made.hosts.values()} == {"n1.org", "n2.org", "n3.org"}
    assert len(made.table.known) == 3
    assert sum(name.startswith("group") for name in made.store.book.cells) == 9
    budgets(made, "https://n0.org/")
    assert made.hosts[joint(parse_target("https://n0.org/").target)].lessons["n0.org"].learner.rate_micro == 9_600_000


@pytest.mark.parametrize("name", ["n{}.org", "n{}.same.org"])
def test_names_that_nothing_was_sent_to_make_room_for_others(name):
    made = hosts()

    def place(host):
        return made.place(parse_target(f"https://{host}/").target, "GET", "/")

    met, waiting = place("met.same.org"), place("waiting.same.org")
    met.host.is_met = True
    made.open = lambda: [a_call(rungs=(waiting.rung,))]
    for number in range(500):
        made.clock.at_ms += ROOM_EVERY_MS // 100
        place(name.format(number))
    made.clock.at_ms += ROOM_EVERY_MS
    new = place("new.same.org")
    assert not new.host.is_shared
    assert place("met.same.org").rung is met.rung
    assert place("waiting.same.org").rung is waiting.rung
    assert all(made.hosts[one.placed] is one for one in (met.host, waiting.host, new.host))
    assert len(made.hosts) <= 41
    assert len(made.store.book.cells) < 240


def test_what_is_let_go_while_its_body_comes_in_is_placed_anew():
    async def act():
        text = TEXT.replace("[egress]", '[egress]\nunknown = "1000 per 1s"\nceiling = "1000 per 1s"')
        async with stage(text=text) as on:
            await on.caller.send(b"PUT /to/http/a.org/ HTTP/1.1\r\nhost: g\r\ncontent-length: 4\r\n\r\nab")
            await eventually(lambda: on.gate.egress.hosts.hosts)
            (host,) = on.gate.egress.hosts.hosts.values()
            on.gate.egress.hosts._remove(host)
            assert host.is_gone
            await on.caller.send(b"cd")
            answer = await on.caller.answer()
            return answer, on.world.hits[0].body, host, list(on.gate.egress.hosts.hosts.values())

    answer, body, before, now = asyncio.run(act())
    assert (answer.status, body) == (200, b"abcd")
    assert [one is before for one in now] == [False]
    assert now[0].is_met


def test_a_gate_that_learned_of_many_hosts_has_room_for_others():
    made = hosts()
    for turn in range(4):
        for number in range(40):
            taken = budgets(made, f"https://t{turn}n{number}.org/")
            lesson = made.hosts[joint(parse_target(f"https://t{turn}n{number}.org/").target)].lessons[
                f"t{turn}n{number}.org"
            ]
            lesson.changes.append((0, None))
            made.show(lesson)
            assert taken[0] == f"t{turn}n{number}.org:learned:rate"  # a budget of its own
        made.clock.at_ms += 2 * IDLE_MS
        made.tidy()


def test_a_group_is_kept_while_any_of_its_hosts_is_called():
    text = TEXT + '[policies.listed]\nhosts = ["a.listed.org"]\nlimits = ["1_000_000 bytes per 1m"]\n'
    made = hosts(text)
    budgets(made, "https://a.listed.org/")
    budgets(made, "https://b.listed.org/")
    for _ in range(3):
        made.clock.at_ms += IDLE_MS - 1
        taken = budgets(made, "https://a.listed.org/")  # its budgets are there
        made.tidy()
    assert "group listed.org:learned:rate" in taken
    assert {host.placed.host for host in made.hosts.values()} == {"a.listed.org"}
    made.clock.at_ms += 2 * IDLE_MS
    made.tidy()
    assert not any("listed.org" in name and name.startswith("group") for name in made.store.book.cells)


def test_what_was_learned_is_kept_over_a_restart():
    made = hosts()
    budgets(made, "https://x.org/")
    lesson = next(iter(made.hosts.values())).lessons["x.org"]
    lesson.changes.append((0, lesson.learner.told(12, 60_000)))
    made.show(lesson)
    again = hosts(kept=made.learned())
    budgets(again, "https://x.org/")
    assert again.store.book.cells["x.org:learned:rate"].limits.quota == lesson.learner.rate_micro // 1_000
    assert again.learned() == made.learned()  # also of hosts that were not called since


def test_a_host_that_asked_to_be_left_alone_is_left_alone_by_the_next_run():
    made = hosts()
    target = parse_target("https://x.org/").target
    until_ms = made.clock.at_ms + 3_600_000
    made.pause(made.place(target, "GET", "/"), until_ms)
    made.place(parse_target("https://y.org/").target, "GET", "/")
    assert made.pauses() == {"x.org": until_ms}
    plan = made.plan._replace(pauses=made.pauses())
    again = Hosts(plan, made.clock, made.store.define, made.store.forget, {})
    assert again.pauses() == {"x.org": until_ms}  # also if nobody calls it in between
    assert again.place(target, "GET", "/").rung.ring.back_at_ms(made.clock.at_ms) == until_ms
    made.clock.at_ms = until_ms
    assert made.pauses() == {}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x.org", "y.net"]), st.integers(0, 2 * IDLE_MS)),
        max_size=40,
    )
)
def test_the_tables_agree_whatever_is_called_when(steps):
    made = hosts()
    for label, domain, pass_ms in steps:
        made.clock.at_ms += pass_ms
        budgets(made, f"https://{label}.{domain}/")
        made.tidy()
        assert set(made.table.known) <= set(made.hosts)
        assert sum(made.table.group_sizes.values()) == len(made.table.known)
        for host in made.hosts.values():
            assert all(name in made.store.book.cells for one in host.lessons.values() for name, _ in one.limits())


def test_unknown_hosts_begin_slowly():
    """Five calls at once to a host of which nothing is known: one goes, the others are told when."""

    async def act():
        async with stage(text="[egress]\npresets = 'off'\n") as on:
            answers = [
                await on.caller.ask("GET", to(f"http://{host}/")) for host in ("a.org", "a.org", "www.a.org", "b.org")
            ]
            return answers, [hit.host for hit in on.world.hits]

    answers, hits = asyncio.run(act())
    statuses = [one.status for one in answers]
    assert statuses[0] == statuses[3] == 200
    assert statuses[1] == 429
    deferral = answers[1].said["deferral"]
    assert deferral["target"] == "http://a.org"
    assert {one["budget"] for one in deferral["blocking"]} >= {"a.org:learned:rate"}
    assert 0 < deferral["not_before_ms"] <= 1_250
    assert hits[0] == "a.org"
