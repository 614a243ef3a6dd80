"""How hosts are called: whose name is said, what stays here, who waits, and what an operator may set per host."""

import asyncio

import pytest
from outside import FAST, stage, whole

from swarmgate.core.scope import Scope, key_hash

POLICY = """
[policies.a]
hosts = ["a.org"]
limits = ["1 per 1h"]
headroom = 100
{}
"""


def run(act, text=FAST, reply=lambda _hit: whole()):
    async def whole_run():
        async with stage(reply, text=text) as on:
            return await act(on)

    return asyncio.run(whole_run())


def test_an_operator_s_user_agent_names_a_contact():
    text = FAST.replace("[egress]", '[egress]\nuser_agent = "swarm/1 (mailto:ops@x.org)"')
    text += '[policies.b]\nhosts = ["b.org"]\nlimits = ["9 per 1s"]\nuser_agent = "other/2"\ntrace = true\n'

    async def act(on):
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "user-agent": "mine"}
        trace["x-request-id"] = "own-1"
        for host in ("a.org", "b.org"):
            await on.caller.ask("GET", f"/to/http/{host}/", trace)
        return on.world.hits

    at_a, at_b = run(act, text)
    assert (at_a.headers["user-agent"], at_b.headers["user-agent"]) == ("swarm/1 (mailto:ops@x.org)", "other/2")
    for name in ("traceparent", "x-request-id"):
        assert name not in at_a.headers
        assert name in at_b.headers


def test_an_agent_s_key_for_the_gate_goes_to_nobody():
    key = "sgk_canary"

    async def act(on):
        keeper = on.gate.ask_for_keys(required=True)
        keeper.replace(b"", {key_hash(key, b""): Scope("k1", team="blue", targets=("*.org",))})
        shown = [
            {"authorization": f"Bearer {key}"},
            {"x-api-key": key},
            {"x-swarmgate-key": key},
            {"proxy-authorization": f"Bearer {key}"},
        ]
        answers = [await on.caller.ask("GET", "/to/http/a.org/", one) for one in shown]
        both = await on.caller.ask("GET", "/to/http/a.org/", {"x-swarmgate-key": key, "authorization": "Bearer theirs"})
        beyond = await on.caller.ask("GET", "/to/http/api.c.net/", {"x-swarmgate-key": key})
        return [*answers, both], beyond, on.world.hits, [call.team for call, *_ in on.gate.callers.ended]

    answers, beyond, hits, teams = run(act)
    assert [one.status for one in answers] == [200] * 5
    assert key not in str(hits)
    assert hits[-1].headers["authorization"] == "Bearer theirs"
    assert set(teams) == {"blue"}
    assert (beyond.status, beyond.said["code"]) == (403, "policy_key_scope")


LEAKED = "sgk_0123456789_" + "x" * 43


@pytest.mark.parametrize("name", ["x-goog-api-key", "cookie", "referer", "private-token"])
def test_an_agent_s_key_in_any_other_header_goes_to_nobody(name):
    async def act(on):
        answer = await on.caller.ask("GET", "/to/http/a.org/", {name: f"k={LEAKED}", "x-mine": "sgk_tools"})
        return answer, on.world.hits

    answer, (hit,) = run(act)
    assert answer.status == 200
    assert name not in hit.headers
    assert hit.headers["x-mine"] == "sgk_tools"


@pytest.mark.parametrize(
    "path",
    [
        f"/to/http/a.org/?key={LEAKED}",
        f"/to/http/a.org/{LEAKED}",
        f"/to/http/{LEAKED}@a.org/",
        f"/to/http/u:{LEAKED}@a.org/",
        f"http://a.org/?key={LEAKED}",
        f"/to/http/a.org/?key={LEAKED.replace('_', '%5f')}",
    ],
)
def test_an_agent_s_key_in_a_url_is_refused_and_goes_to_nobody(path):
    async def act(on):
        return await on.caller.ask("GET", path, {"host": "a.org"} if path[0] == "h" else {}), on.world.hits

    answer, hits = run(act)
    assert (answer.status, answer.said["code"]) == (400, "caller_bad_request")
    assert LEAKED not in str(answer)
    assert not hits


def test_egress_does_not_wait_unless_told_to():
    async def act(on):
        first = await on.get("http://a.org/")
        at_once = await on.get("http://a.org/")
        patient = await on.get("http://a.org/", x_swarmgate_wait="300ms")
        return first, at_once, patient

    first, at_once, patient = run(act, POLICY.format(""))
    assert (first.status, at_once.status, patient.status) == (200, 429, 429)
    assert at_once.said["deferral"]["waited_ms"] < 200
    assert patient.said["deferral"]["waited_ms"] >= 300
    assert at_once.headers["x-should-retry"] == "false"
    assert int(at_once.headers["retry-after"]) >= at_once.said["deferral"]["not_before_ms"] // 1_000


def test_a_long_body_that_is_deferred_is_read_to_its_end():
    async def act(on):
        await on.get("http://a.org/")
        return await on.caller.ask("PUT", "/to/http/a.org/", {}, bytes(2_000_000)), on.world.hits

    answer, hits = run(act, POLICY.format(""))
    assert (answer.status, answer.said["code"], len(hits)) == (429, "policy_rate", 1)


@pytest.mark.parametrize(
    ("extra", "asked", "status", "hits"),
    [
        ("", {}, 503, 1),  # a write is sent once
        ("callers_may_say_read = true", {"x-swarmgate-effect": "read"}, 200, 2),
        ("", {"x-swarmgate-effect": "read"}, 400, 0),
        ('[policies.a.classes.find]\npaths = ["/find"]\neffect = "read"', {}, 200, 2),
    ],
)
def test_whether_a_post_may_be_repeated_is_the_operator_s_word(extra, asked, status, hits):
    async def act(on):
        return await on.caller.ask("POST", "/to/http/a.org/find", asked), len(on.world.hits)

    said = iter([whole(503), whole(200)])
    answer, seen = run(act, POLICY.format(extra).replace("1 per 1h", "900 per 1s"), lambda _hit: next(said))
    assert (answer.status, seen) == (status, hits)


def test_ports_of_a_policy_replace_the_usual_ones():
    async def act(on):
        return [(await on.get(url)).status for url in ("http://a.org:8080/", "http://a.org/", "http://b.org:8080/")]

    text = FAST + POLICY.format("ports = [8080]").replace("1 per 1h", "900 per 1s")
    assert run(act, text) == [200, 403, 403]


def test_bytes_are_charged_as_they_are():
    text = POLICY.replace("1 per 1h", '90 per 1s", "600_000 bytes per 1h').format("")

    async def act(on):
        statuses = [(await on.get("http://a.org/", x_swarmgate_wait="200ms")).status for _ in range(4)]
        cell = on.gate.store.book.cells["a: bytes per 3600s"]
        return statuses, cell.level

    statuses, level = run(act, text, lambda _hit: whole(body=bytes(250_000)))
    assert statuses == [200, 200, 429, 429]  # a quarter is kept for P0
    assert level == 500_000


def test_a_host_that_is_down_gets_one_probe_at_a_time():
    async def act(on):
        answers = [await on.caller.ask("POST", "/to/http/a.org/") for _ in range(30)]
        return answers, len(on.world.hits)

    text = POLICY.format("").replace("1 per 1h", "900_000 per 1s")
    answers, hits = run(act, text, lambda _hit: whole(500, b"down"))
    assert answers[0].status == 500
    assert (answers[-1].status, answers[-1].said["code"]) == (429, "target_broken")
    assert hits == 20
