"""An agent key's own caps (LG-11): taken before anything leaves, at every door, once for a key and those that follow it."""

import asyncio
import json

import pytest
from stage import TARGET, UNARY, stage, warm, whole
from test_cap_desk import PRICE, Caller, blocking
from test_keeper import PEPPER, ask, connect
from wires import Bench

from swarmgate.config.callers import caps_of_key
from swarmgate.core.errors import BadInput
from swarmgate.core.scope import Scope, key_hash


def keyed(caller, **limits):
    """Let these keys in, each with its own caps."""
    gate = caller.bench.gate if isinstance(caller, Caller) else caller.gate
    scopes = {f"sgk_{name}": Scope(name, "", limits=tuple(told), capped_as=name) for name, told in limits.items()}
    gate.ask_for_keys(required=False).replace(PEPPER, {key_hash(key, PEPPER): one for key, one in scopes.items()})
    gate.cap_callers()
    return caller


def test_lg_11_a_key_is_held_to_its_own_caps_and_nobody_else_to_them():
    caller = keyed(Caller(""), one=["2 per 60s"], two=["9 per 60s"])
    assert [caller.ask(key="sgk_one")[0] for _ in range(3)] == [200, 200, 429]
    status, said = caller.ask(key="sgk_one", agent="other")  # another name is no other budget
    assert (status, blocking(said)) == (429, ["key one: 2 requests per 60s"])
    assert [caller.ask(key="sgk_two")[0], caller.ask()[0]] == [200, 200]
    caller.bench.pass_time(63_000)
    assert caller.ask(key="sgk_one")[0] == 200
    assert caller.bench.reserved == 0


def test_lg_11_money_is_reserved_before_anything_is_sent():
    """Two hundred calls at once, each of which may cost 7,000: seven fit 50,000, whatever the target counts afterwards."""
    bench = keyed(Bench(TARGET.format(port=9) + PRICE), one=["0.05 USD per 1d"])
    warm(bench.gate)
    body = json.dumps({"model": "m", "messages": [], "max_tokens": 3}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-key: sgk_one\r\nx-swarmgate-wait: 0s\r\ncontent-length: {len(body)}\r\n\r\n"
    doors = []
    for _ in range(200):
        bench.client = door = type(bench.client)(bench.gate.front, bench.gate.sweep, bench.gate.doors, 201)
        door.connection_made(type(bench.wire)())
        door.data_received(head.encode() + body)
        doors.append(door)
    cell = bench.gate.store.book.cells["key one: 0.05 USD per 86400s"]
    while bench.dialler.dials:
        bench.dialler.succeed()
    sent = [end for end, wire in bench.dialler.opened if wire.written]
    assert (len(sent), cell.pending) == (7, 49_000)
    for end in sent:
        end.data_received(whole(UNARY))  # 9 of prompt and 3 of output: 15,000 each
    assert (cell.level, cell.pending) == (7 * 15_000, 0)
    assert bench.ends.count("deferred") == 193
    assert not bench.bugs


def test_lg_11_a_key_with_money_asks_nothing_of_unknown_price():
    caller = keyed(Caller(""), one=["5 USD per 1d"])
    status, said = caller.ask(key="sgk_one")
    assert (status, said["error"]["code"]) == (403, "policy_price_unknown")


@pytest.mark.parametrize("way", ["/v1/batches", "/v1/chat/completions", "CONNECT"])
def test_lg_11_a_keys_own_caps_hold_on_every_way(way):
    text = (
        TARGET
        + '[egress]\nports = [{port}]\nconnect = "tunnel"\nunknown = "100_000 per 1s"\nceiling = "100_000 per 1s"\nin_flight = 9\n'
    )

    async def scene():
        async with stage(text=text + '[resolve]\n"site.test" = "127.0.0.1:{port}"\n') as running:
            running.gate.store.book.birth_ms = -(2**51)  # hosts that are met begin warm
            keyed(running, all=["2 per 60s"])
            site = f"site.test:{running.gate.targets['up'].origin.port}"
            statuses = []
            for _ in range(4):
                if way == "CONNECT":
                    statuses.append(await connect(running.port, site))
                else:
                    statuses.append((await ask(running.port, "sgk_all", path=way, more="x-swarmgate-wait: 0s\r\n"))[0])
            return statuses

    assert asyncio.run(scene()) == [200, 200, 429, 429]


def test_lg_11_a_successor_goes_on_where_its_predecessor_stood():
    caller = keyed(Caller(""), one=["2 per 60s"])
    assert caller.ask(key="sgk_one")[0] == 200
    heir = Scope("two", "", limits=("2 per 60s",), capped_as="one")
    keeper = caller.bench.gate.desk.keeper
    keeper.replace(PEPPER, {key_hash("sgk_one", PEPPER): heir._replace(id="one"), key_hash("sgk_two", PEPPER): heir})
    assert [caller.ask(key=key)[0] for key in ("sgk_two", "sgk_one", "sgk_two")] == [200, 429, 429]


def test_lg_11_what_a_key_has_used_is_restored_by_the_name_of_its_budget():
    caps = Caller("").bench.gate.plan.caps
    for limits in (["5.000001 USD per 1d"], ["4 concurrent"], ["100 tokens per 60s"], ["1_000 per 1h"]):
        (one,) = caps_of_key("abc", limits)
        assert caps.limits_of(one.name) == one.compiled.limits
    for name in ("key abc: 5 pounds per 1d", "key abc", "key abc: -1 per 1s", "keyabc: 5 per 1s"):
        assert caps.limits_of(name) is None


def test_ti_04_a_keys_budget_is_shown_to_it_alone():
    caller = keyed(Caller(""), one=["2 per 60s"], two=["9 per 60s"])
    caller.ask(key="sgk_one")
    caller.ask(key="sgk_two")
    seen = {}
    for key in ("sgk_one", "sgk_two", ""):
        bench = caller.bench
        bench.wire.written.clear()
        line = f"x-swarmgate-key: {key}\r\n" if key else ""
        bench.client.data_received(f"GET /swarmgate/v1/budgets HTTP/1.1\r\nhost: g\r\n{line}\r\n".encode())
        said = json.loads(b"".join(bench.wire.written).partition(b"\r\n\r\n")[2])
        seen[key] = [row["budget"] for row in said["budgets"] if row["budget"].startswith("key ")]
    assert seen == {"sgk_one": ["key one: 2 requests per 60s"], "sgk_two": ["key two: 9 requests per 60s"], "": []}


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (["0 per 1s"], "at least 1"),
        (["5 EUR per 1d"], "no unit"),
        (["2 per 1s", "3 per 1s"], "two limits"),
        ([5], "no limit"),
    ],
)
def test_what_is_no_cap_is_refused(limits, reason):
    with pytest.raises(BadInput, match=reason) as caught:
        caps_of_key("abc", limits)
    assert caught.value.field == "limits"
