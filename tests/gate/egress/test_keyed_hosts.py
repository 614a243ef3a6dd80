"""Writes to other people's hosts that carry a key: one effect each, whatever becomes of their answers."""

import asyncio
import contextlib

from outside import FAST, Caller, stage, to, whole

from eventually import eventually
from swarmgate.control.writes import WriteOrders
from swarmgate.core.scope import Scope, key_hash
from swarmgate.stores.sql.writes import Writes

URL = "http://a.org/rows"
KEYED = {"idempotency-key": "k1", "x-swarmgate-agent": "a"}


@contextlib.asynccontextmanager
async def keeping(folder, reply, text=FAST):
    with contextlib.closing(Writes.opened(folder)) as writes:
        orders = WriteOrders(writes).table

        async def ask(order, **said):
            return await orders[order](said)

        async with stage(reply, text) as on:
            on.gate.keep_writes("run", ask)
            yield on
            await eventually(lambda: not on.gate.callers.once._tasks)


def run(folder, act, reply=lambda _hit: whole(201, b"made"), text=FAST):
    async def play():
        async with keeping(folder, reply, text) as on:
            return await act(on)

    return asyncio.run(play())


async def post(on, body=b"row", **more):
    answer = await on.caller.ask("POST", to(URL), KEYED | more, body)
    await eventually(lambda: not on.gate.callers.once._tasks)
    return answer


def test_a_repeat_gets_the_stored_answer(tmp_path):
    async def act(on):
        return await post(on), await post(on), len(on.world.hits), on.world.hits[0].headers

    first, again, hits, headers = run(tmp_path, act)
    assert (first.status, first.body) == (again.status, again.body) == (201, b"made")
    assert again.headers["x-swarmgate-replayed"] == "true"
    assert hits == 1
    assert headers["idempotency-key"] == "k1"


def test_other_content_or_another_path_is_a_mismatch(tmp_path):
    async def act(on):
        await post(on)
        other = await post(on, b"other")
        elsewhere = await on.caller.ask("POST", to("http://a.org/other"), KEYED, b"row")
        return other, elsewhere, len(on.world.hits)

    other, elsewhere, hits = run(tmp_path, act)
    assert (other.status, other.said["code"]) == (422, "caller_write_mismatch")
    assert (elsewhere.status, elsewhere.said["code"]) == (422, "caller_write_mismatch")
    assert hits == 1


def test_an_answer_that_is_lost_is_an_unknown_effect_for_good(tmp_path):
    async def act(on):
        return await post(on), await post(on), len(on.world.hits)

    lost, again, hits = run(tmp_path, act, lambda _hit: b"")
    assert (lost.said["code"], again.said["code"]) == ("target_unknown_effect", "target_unknown_effect")
    assert hits == 1


def test_a_refusal_of_the_host_frees_the_key(tmp_path):
    answers = iter([whole(422, b"no"), whole(201, b"made")])

    async def act(on):
        return await post(on), await post(on, b"corrected")

    refused, made = run(tmp_path, act, lambda _hit: next(answers))
    assert (refused.status, made.status) == (422, 201)


def test_a_read_and_a_write_without_key_are_none_of_this(tmp_path):
    async def act(on):
        for _ in range(2):
            await on.caller.ask("GET", to(URL), KEYED)
            await on.caller.ask("POST", to(URL), {"x-swarmgate-agent": "a"}, b"row")
        return len(on.world.hits)

    assert run(tmp_path, act) == 4


def test_a_body_that_must_stream_cannot_carry_a_key(tmp_path):
    async def act(on):
        return await on.caller.ask("POST", to(URL), KEYED, b"x" * 100_000), len(on.world.hits)

    answer, hits = run(tmp_path, act)
    assert (answer.status, hits) == (400, 0)
    assert "65536" in answer.said["detail"]


def test_ti_02_two_tenants_never_share_a_key(tmp_path):
    async def act(on):
        keeper = on.gate.ask_for_keys(required=True)
        scopes = {f"sgk_{team}": Scope(team, team) for team in ("one", "two")}
        keeper.replace(b"p", {key_hash(key, b"p"): scope for key, scope in scopes.items()})
        first = await post(on, **{"x-swarmgate-key": "sgk_one"})
        other = Caller(on.caller.port)
        second = await other.ask("POST", to(URL), KEYED | {"x-swarmgate-key": "sgk_two"}, b"row")
        other.close()
        return first, second, [hit.headers for hit in on.world.hits]

    first, second, hits = run(tmp_path, act)
    assert (first.status, second.status, len(hits)) == (201, 201, 2)
    assert "x-swarmgate-replayed" not in second.headers
    assert not [value for headers in hits for value in headers.values() if "sgk_" in value]


HONEST = (
    FAST
    + """
[policies.honest]
hosts = ["a.org"]
limits = ["1000 per 1s"]
honours_keys = true
"""
)


def test_a_host_that_honours_keys_is_asked_again_with_the_same_key(tmp_path):
    answers = iter([b"", whole(201, b"made")])
    named = {"x-swarmgate-agent": "a", "x-swarmgate-task": "t", "x-swarmgate-op": "7"}

    async def act(on):
        answer = await on.caller.ask("POST", to(URL), named, b"row")
        return answer, [hit.headers.get("idempotency-key") for hit in on.world.hits]

    answer, keys = run(tmp_path, act, lambda _hit: next(answers), HONEST)
    assert (answer.status, answer.body) == (201, b"made")
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert keys[0]


def test_a_host_that_promised_nothing_gets_no_key_of_ours_and_no_repeat(tmp_path):
    named = {"x-swarmgate-agent": "a", "x-swarmgate-task": "t", "x-swarmgate-op": "7"}

    async def act(on):
        answer = await on.caller.ask("POST", to(URL), named, b"row")
        return answer, [hit.headers.get("idempotency-key") for hit in on.world.hits]

    answer, keys = run(tmp_path, act, lambda _hit: b"")
    assert answer.said["code"] == "target_unknown_effect"
    assert keys == [None]
