import asyncio
import contextlib
import json
from base64 import b64encode
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import TARGET, stage
from wires import Bench

from python_calls import entered
from swarmgate.core.reasons import Reason
from swarmgate.core.scope import Scope, key_hash
from swarmgate.gate.keeper import MOST_REMEMBERED, Keeper, presented

PEPPER = b"pepper"
KEY = "sgk_1_" + "x" * 30
ANY = ("*",)


def keeper(*, required=True, now_ms=1_000, **keys):
    made = Keeper(lambda: now_ms, required=required)
    scopes = keys or {KEY: Scope("1")}
    made.replace(PEPPER, {key_hash(key, PEPPER): scope for key, scope in scopes.items()})
    return made


@pytest.mark.parametrize(
    "fields",
    [
        {b"authorization": b"Bearer " + KEY.encode()},
        {b"authorization": b"bearer  " + KEY.encode()},
        {b"x-api-key": KEY.encode()},
        {b"api-key": KEY.encode()},
        {b"x-swarmgate-key": KEY.encode()},
        {b"proxy-authorization": b"Bearer " + KEY.encode()},
        {b"proxy-authorization": b"Basic " + b64encode(KEY.encode() + b":")},
        {b"proxy-authorization": b"Basic " + b64encode(b"user:" + KEY.encode())},
        {b"authorization": b"Bearer unused", b"x-swarmgate-key": KEY.encode()},
    ],
)
def test_a_good_key_comes_in_wherever_its_client_puts_it(fields):
    assert keeper().refuses(fields) is None
    assert keeper().scope(fields).id == "1"


@pytest.mark.parametrize(
    ("fields", "required", "why"),
    [
        ({}, True, Reason.CALLER_KEY_MISSING),
        ({}, False, None),
        ({b"authorization": b"Bearer sk-of-some-sdk"}, True, Reason.CALLER_KEY_MISSING),
        ({b"authorization": b"Bearer sk-of-some-sdk"}, False, None),
        ({b"authorization": b"Bearer sgk_1_wrong"}, True, Reason.CALLER_KEY_REFUSED),
        ({b"authorization": b"Bearer sgk_1_wrong"}, False, Reason.CALLER_KEY_REFUSED),
        ({b"authorization": b"Basic ???"}, True, Reason.CALLER_KEY_MISSING),
        ({b"authorization": KEY.encode()}, True, Reason.CALLER_KEY_MISSING),
    ],
)
def test_who_has_no_good_key(fields, required, why):
    assert keeper(required=required).refuses(fields) is why


def test_a_key_lapses_and_is_replaced_at_once():
    fields = {b"x-api-key": KEY.encode()}
    now_ms = [1_000]
    made = Keeper(lambda: now_ms[0], required=True)
    made.replace(PEPPER, {key_hash(KEY, PEPPER): Scope("1", expires_ms=2_000)})
    assert made.refuses(fields) is None
    now_ms[0] = 2_000
    assert made.refuses(fields) is Reason.CALLER_KEY_REFUSED
    made.replace(PEPPER, {key_hash(KEY, PEPPER): Scope("1")})
    assert made.refuses(fields) is None
    made.replace(PEPPER, {})
    assert made.refuses(fields) is Reason.CALLER_KEY_REFUSED


@given(
    st.dictionaries(st.sampled_from([b"authorization", b"x-api-key", b"proxy-authorization"]), st.binary(max_size=40))
)
def test_whatever_stands_in_the_fields_nobody_guesses_in(fields):
    assert keeper().refuses(fields) in {Reason.CALLER_KEY_MISSING, Reason.CALLER_KEY_REFUSED}
    assert presented(fields) == b"" or presented(fields).startswith(b"sgk_")


def test_guesses_are_forgotten():
    made = keeper()
    for number in range(MOST_REMEMBERED + 10):
        made.refuses({b"x-api-key": b"sgk_%d" % number})
    assert len(made._seen) <= MOST_REMEMBERED
    assert made.refused == MOST_REMEMBERED + 10


async def ask(port, key, *, path="/v1/chat/completions", model="m", more=""):
    body = json.dumps({"model": model, "messages": []}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        head = f"POST {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\n{more}"
        head += f"authorization: Bearer {key}\r\n" if key else ""
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.read()
    head, _, said = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(said)


def code(answer):
    return answer[0], answer[1].get("error", {}).get("code")


def test_a_gate_that_asks_for_keys():
    async def scene():
        async with stage() as running:
            made = running.gate.ask_for_keys(required=True)
            scopes = {
                "sgk_all": Scope("1", "lab"),
                "sgk_other": Scope("2", targets=("other",)),
                "sgk_mini": Scope("3", models=("mini*",)),
            }
            made.replace(PEPPER, {key_hash(key, PEPPER): scope for key, scope in scopes.items()})
            assert code(await ask(running.port, "")) == (401, "caller_key_missing")
            assert code(await ask(running.port, "sgk_none")) == (401, "caller_key_refused")
            assert code(await ask(running.port, "sgk_other")) == (403, "policy_key_scope")
            assert code(await ask(running.port, "sgk_mini")) == (403, "policy_key_scope")
            assert code(await ask(running.port, "", path="/swarmgate/v1/budgets")) == (401, "caller_key_missing")
            assert not running.stand_in.hits
            assert (await ask(running.port, "sgk_mini", model="mini-1"))[0] == 200
            assert (await ask(running.port, "sgk_all"))[0] == 200
            (first, second) = running.stand_in.hits
            assert not [value for hit in (first, second) for value in hit.headers.values() if "sgk_" in value]
            assert running.gate.callers.ended[-1][0].team == "lab"
            anthropic = await ask(running.port, "", path="/v1/messages", more="anthropic-version: 2023-06-01\r\n")
            assert anthropic[0] == 401
            assert anthropic[1]["type"] == "error"

    asyncio.run(scene())


def test_p14_a_key_longer_than_any_is_refused_and_not_remembered():
    made = keeper()
    for number in range(100):
        assert made.refuses({b"x-api-key": b"sgk_%d_" % number + b"x" * 30_000}) is Reason.CALLER_KEY_REFUSED
    assert not made._seen


def test_who_may_ask_for_some_models_only_asks_nothing_that_is_not_read():
    async def scene():
        async with stage() as running:
            made = running.gate.ask_for_keys(required=True)
            scopes = {"sgk_mini": Scope("3", "lab", models=("mini*",)), "sgk_all": Scope("1", "lab")}
            made.replace(PEPPER, {key_hash(key, PEPPER): scope for key, scope in scopes.items()})
            assert code(await ask(running.port, "sgk_mini", path="/v1/batches")) == (403, "policy_key_scope")
            assert not running.stand_in.hits
            assert running.ends == ["refused"]  # and is on record, with its team
            assert running.gate.callers.ended[-1][0].team == "lab"
            assert (await ask(running.port, "sgk_all", path="/v1/batches"))[0] == 200
            assert running.gate.callers.ended[-1][0].tenant == "lab"

    asyncio.run(scene())


CAPPED = (
    TARGET
    + """
[teams.lab]
agents = ["nobody"]
limits = ["2 per 60s"]
[egress]
ports = [{port}]
connect = "tunnel"
unknown = "10 per 1s"
[resolve]
"site.test" = "127.0.0.1:{port}"
"""
)


@pytest.mark.parametrize("way", ["/v1/batches", "CONNECT"])
def test_lg_11_the_caps_of_a_keys_team_hold_on_every_way(way):
    async def scene():
        async with stage(text=CAPPED) as running:
            made = running.gate.ask_for_keys(required=True)
            made.replace(PEPPER, {key_hash("sgk_all", PEPPER): Scope("1", "lab")})
            site = f"site.test:{running.gate.targets['up'].origin.port}"
            statuses = []
            for _ in range(4):
                if way == "CONNECT":
                    statuses.append(await connect(running.port, site))
                else:
                    more = "x-swarmgate-wait: 0s\r\n"
                    statuses.append((await ask(running.port, "sgk_all", path=way, more=more))[0])
            assert statuses.count(200) <= 2, statuses
            assert 429 in statuses

    asyncio.run(scene())


async def connect(port, site):
    """A tunnel's status; a host that is new has a burst of one, so two in one millisecond wait for the next."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        head = f"CONNECT {site} HTTP/1.1\r\nhost: {site}\r\nproxy-authorization: Bearer sgk_all\r\nx-swarmgate-wait: 20ms\r\n\r\n"
        writer.write(head.encode())
        return int((await reader.readuntil(b"\r\n")).split(b" ")[1])


class Door:
    """One gate that asks for keys, without sockets, and what it says to each request."""

    def __init__(self):
        self.bench = Bench(TARGET.format(port=9))
        keeper = self.bench.gate.ask_for_keys(required=True)
        keeper.replace(PEPPER, {key_hash(KEY, PEPPER): Scope("1")})

    def ask(self, key, target="GET /swarmgate/v1/budgets", host="g"):
        bench = self.bench
        bench.client.data_received(f"{target} HTTP/1.1\r\nhost: {host}\r\nx-swarmgate-key: {key}\r\n\r\n".encode())
        head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
        bench.wire.written.clear()
        return int(head.split()[1]), head.decode(), json.loads(body)


def test_az_09_who_guesses_is_slowed_and_a_good_key_comes_in_all_the_same():
    door = Door()
    found = []
    for number in range(10_000):
        found.append(door.ask(f"sgk_1_{number}")[0])
        if number % 1_000 == 999:
            assert door.ask(KEY)[0] == 200
    assert found[:10] == [401] * 10
    assert found.count(401) < 10 + 60  # one a second, however long this takes here
    assert set(found) == {401, 429}
    status, head, said = door.ask("sgk_1_x", "POST /v1/chat/completions")
    assert (status, said["error"]["code"]) == (429, "caller_key_throttled")
    assert "retry-after: 1\r\n" in head
    assert "x-should-retry: false" in head
    assert "deferral" not in said["error"]  # it is no place in a line
    status, head, said = door.ask("sgk_1_x", "CONNECT site.test:443", "site.test:443")
    assert (status, said["code"]) == (429, "caller_key_throttled")
    assert "content-type: application/problem+json" in head
    assert len(door.bench.gate.journal.entries) == 0  # nothing that a log line would be made of


def test_az_09_a_key_that_is_nearly_right_costs_as_much_as_any_other():
    """Timing tells nothing: a key is looked up by its keyed hash, so no part of it is ever compared."""
    steps = []
    for wrong in (KEY[:-1] + "y", "sgk_1_" + "y" * 30, "sgk_9_" + "z" * 30, KEY[:-1]):
        fields = {b"x-api-key": wrong.encode()}
        steps.append(len(entered(partial(keeper().refuses, fields), {"call", "c_call"})))
    assert len(set(steps)) == 1


def test_sc_05_what_is_on_file_opens_nothing():
    """Who reads the table of keys has hashes; none of them is a key, in any place."""
    made = keeper()
    (stored,) = made._scopes
    for shown in (stored, f"sgk_{stored}", f"sgk_1_{stored}", PEPPER.decode()):
        for place in (b"x-swarmgate-key", b"x-api-key", b"api-key"):
            assert made.refuses({place: shown.encode()}) is not None
    assert len(KEY) >= 30


OPERATOR = "t" * 43
ROLES = {"nobody": "", "agent": KEY, "operator": OPERATOR, "agent of elsewhere": "sgk_9_" + "x" * 30}
PATHS = (
    "POST /v1/chat/completions",
    "GET /v1/models",
    "GET /v1/files",
    "GET /swarmgate/v1/budgets",
    "POST /swarmgate/v1/plan",
)
DOORS = ("GET /to/http/site.test/", "GET http://site.test/", "CONNECT site.test:443")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("target", [*PATHS, *DOORS])
def test_az_03_the_data_port_is_for_agents_only(role, target):
    """An operator's token opens nothing here, and an agent's key nothing there (tests/control/test_checks.py)."""
    door = Door()
    host = target.split("//")[-1].strip("/") if "//" in target else target.split()[1] if "CONNECT" in target else "g"
    bench = door.bench
    key = f"authorization: Bearer {ROLES[role]}\r\nx-swarmgate-key: {ROLES[role]}\r\n" if ROLES[role] else ""
    bench.client.data_received(f"{target} HTTP/1.1\r\nhost: {host}\r\n{key}\r\n".encode())
    written = b"".join(bench.wire.written)
    refused = written.split()[1:2] == [b"401"]
    assert refused == (role != "agent"), written[:200]
    if refused:
        assert not bench.gate.pump.open
        assert not bench.dialler.dials
