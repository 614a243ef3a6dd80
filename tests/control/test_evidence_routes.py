"""What is on file, asked of the operator port: the same answers as the commands give, and nothing told of ids that are none."""

import asyncio
import json
from contextlib import closing

import pytest
from processes import http, provider, query, up
from story import START_MS, Story, import_all
from test_operator import GOOD, Desk, ask

from eventually import eventually
from swarmgate.control import operator
from swarmgate.control.agent_keys import KeyOffice
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import Shelf
from swarmgate.stores.sql.agent_keys import AgentKeys

SPAN = "from=2026-09-21T00:00&to=2026-09-30T00:00"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    story = Story(folder)
    story.boot()
    story.revision()
    story.answered("req-1")
    story.revision(amount=2, revision=2, policy=2, author="ann", reason="they asked")
    story.deferred("req-2")
    story.write()
    import_all(folder, lambda *_: 1_000).close()
    letter = Letter(
        "req-9", START_MS, "target_error", "up", "m", 4, {"agent": "a1"}, "POST", "/v1/x", [], None, "not kept"
    )
    Shelf(folder).put(letter, START_MS)
    made = Desk()
    made.state = folder
    return made


def told(desk, path, method="GET", body=b"{}"):
    desk.threads = asyncio.Semaphore(1)  # of this request's loop
    return ask(method, path, GOOD | {"content-type": "application/json"}, body, desk)


def test_revisions_with_author_and_reason(desk):
    status, rows = told(desk, "/revisions?target=up")
    assert status == 200
    assert [(row["revision"], row["amount"], row["author"], row["reason"]) for row in rows] == [
        (2, 2, "ann", "they asked"),
        (1, 4, "configuration", "start"),
    ]
    assert told(desk, "/revisions?target=other") == (200, [])
    assert len(told(desk, "/revisions")[1]) == 2


def test_a_report_and_its_page(desk):
    status, said = told(desk, f"/report?target=up&{SPAN}")
    assert (status, said["sent"], said["put_off"]) == (200, 1, 1)
    status, page = told(desk, f"/report?target=up&{SPAN}&as=html")
    assert status == 200
    assert page.startswith(b"<!doctype html>")


def test_costs_and_a_life(desk):
    assert told(desk, f"/costs?by=agent&{SPAN}")[1][0]["agent"] == "a1"
    assert told(desk, f"/costs?by=context&{SPAN}")[1][0]["band"] == "up to 4K"
    status, said = told(desk, "/calls/req-1")
    assert (status, said["call"]["step"], said["attempts"][0]["limits"][0]["revision"]) == (200, "s1", 1)


def test_letters_are_listed_without_their_bodies(desk):
    (row,) = told(desk, "/dead")[1]
    assert (row["id"], row["body"], row["step"]["agent"]) == ("req-9", None, "a1")
    assert told(desk, "/dead/req-9")[1]["without_body"] == "not kept"
    status, said = told(desk, "/dead/req-9/replay", "POST")
    assert (status, said["error"]["reason"]) == (400, "is not there: not kept")


@pytest.mark.parametrize("identity", ["req-none", "..%2Fx", "%00", "x" * 300, "' OR 1=1 --"])
@pytest.mark.parametrize("path", ["/calls/{}", "/dead/{}", "/dead/{}/replay", "/dead/{}/drop"])
def test_an_id_that_is_none_is_told_nothing(desk, path, identity):
    method = "POST" if path.count("/") == 3 else "GET"
    status, said = told(desk, path.format(identity), method)
    assert status == 404
    assert said in ({"error": {"field": "id", "reason": "is not known here"}}, b"Not Found")


MALFORMED = (
    *(
        "none",
        "req-1\x00",
        "../operator.token",
        "..",
        "' OR 1=1 --",
        "%2e%2e",
        "x" * 9_000,
        "ü\u202e",
        "\r\n",
        "{}",
        "*",
    ),
    *("${jndi:ldap://x}", "req-", "REQ-1", " req-1", "req-9.json", "sgk_1_x", "-1", "null"),
)
WITH_ID = [(path, method) for path, method, _ in operator.ROUTES if "{id}" in path]


@pytest.mark.parametrize(("path", "method"), WITH_ID)
def test_ti_04_no_route_tells_a_foreign_id_from_a_malformed_one(desk, path, method):
    """The same 404 for all, whatever the id is and whatever the route would do with a good one."""
    said = set()
    with closing(AgentKeys.opened(desk.state)) as keys:
        desk.keys = KeyOffice(keys, Audit(desk.state), desk.order)
        for one in MALFORMED:
            status, answer = told(desk, path.replace("{id}", one), method)
            if status == 404 and isinstance(answer, bytes):
                continue  # no path of ours
            said.add((status, json.dumps(answer)))
        assert Audit(desk.state).read().changes == []
    assert said == {(404, '{"error": {"field": "id", "reason": "is not known here"}}')}
    assert len(WITH_ID) == 6


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/report?target=nowhere", "target"),
        ("/report?target=up&from=yesterday", "from"),
        ("/report?target=up&from=1h&to=2h", "from"),
        ("/report?target=up&as=pdf", "as"),
        ("/costs?by=moon", "by"),
        ("/costs?colour=red", "colour"),
        ("/revisions?policy=1", "policy"),
    ],
)
def test_what_cannot_be_asked_names_the_word(desk, path, field):
    status, said = told(desk, path)
    assert (status, said["error"]["field"]) == (400, field)


def test_the_rules_are_those_that_are_shipped(desk):
    status, said = told(desk, "/prometheus/rules")
    assert status == 200
    assert b"- alert: slow_p99" in said


def test_a_letter_that_cannot_be_sent_from_here_is_not_claimed(tmp_path):
    async def order(_name, _said):
        return {"address": ("127.0.0.1", 9), "tls": True}

    made = Desk()
    made.state, made.order = tmp_path, order
    Shelf(tmp_path).put(
        Letter("req-9", START_MS, "target_error", "up", "m", 4, {}, "POST", "/v1/x", [], b"{}"), START_MS
    )
    status, said = told(made, "/dead/req-9/replay", "POST")
    assert (status, "--gate https://" in said["error"]["reason"]) == (400, True)
    assert Shelf(tmp_path).letter("req-9").replays == {}


def test_a_letter_goes_again_through_a_running_gate_once(tmp_path):
    async def play():
        async with provider() as (witness, port), up(tmp_path / "state", port) as gate:
            await gate.ready()
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "again"}]}).encode()
            step = [("content-type", "application/json"), ("x-swarmgate-agent", "a7"), ("x-swarmgate-step", "again")]
            letter = Letter(
                "req-9", START_MS, "target_error", "up", "m", 4, {}, "POST", "/v1/chat/completions", step, body
            )
            Shelf(gate.folder).put(letter, START_MS)
            first = await gate.operate("POST", "/dead/req-9/replay", {"replay_id": "r1"})
            assert (first.status, first.said["status"]) == (200, 200), first
            again = await gate.operate("POST", "/dead/req-9/replay", {"replay_id": "r1"})
            assert again.status == 400
            assert "sent already" in again.said["error"]["reason"]
            assert witness.hits == {"again": 1}
            assert (await http(gate.operator_port, "POST", "/dead/req-9/drop")).status == 401
            assert (await gate.operate("GET", "/dead/req-9")).said["replays"] == {"r1": "200"}
            assert (await gate.operate("POST", "/dead/req-9/drop")).status == 200
            assert (await gate.operate("GET", "/dead")).said == []
            await eventually(lambda: query(gate.folder, "SELECT agent, step FROM calls") == [("a7", "again")], 20)

    asyncio.run(play())
