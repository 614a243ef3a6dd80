"""Keyed writes on real sockets: an agent that loses its answers and repeats itself has one effect."""

import asyncio
import contextlib
import json
import random
import socket
import sqlite3
from functools import partial
from types import SimpleNamespace

import pytest
from stage import UNARY, stage, whole

from eventually import eventually
from swarmgate.control.data import ask_durably
from swarmgate.control.link import LinkLost
from swarmgate.control.writes import WriteOrders
from swarmgate.core.scope import Scope, key_hash
from swarmgate.stores.sql.writes import FILE, Writes


class Records:
    """The control process's side, in this process; `is_away` = it hears nothing, `is_mute` = it does not answer."""

    def __init__(self, folder):
        self.writes = Writes.opened(folder)
        self.table = WriteOrders(self.writes).table
        self.is_away = self.is_mute = False

    async def ask(self, order, **said):
        if self.is_away:
            raise LinkLost("gone")
        told = await self.table[order](said)
        if self.is_mute:
            raise LinkLost("no answer within 5 s")
        return told


@contextlib.asynccontextmanager
async def keeping(script, folder):
    records = Records(folder)
    async with stage(script) as running:
        running.gate.keep_writes("run", records.ask)
        yield running, records
        await eventually(lambda: not running.gate.callers.once._tasks)
    records.writes.close()


async def numbered(stand_in, _hit, writer):
    """Each answer has a name of its own."""
    writer.write(whole(UNARY | {"id": f"answer-{len(stand_in.hits)}"}))


def request(sequence, *, content="x", key=None):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()
    named = f"idempotency-key: {key}\r\n" if key else f"x-swarmgate-task: t\r\nx-swarmgate-op: {sequence}\r\n"
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-agent: a\r\nx-swarmgate-effect: write\r\n{named}"
    )
    return f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def send(port, raw, *, leaves_after_s=None):
    """Status, fields and JSON of the answer; None if the caller left before it came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        writer.write(raw)
        try:
            async with asyncio.timeout(leaves_after_s):
                answer = await reader.read()
        except TimeoutError:
            return None
    head, _, body = answer.partition(b"\r\n\r\n")
    start, *lines = head.decode().split("\r\n")
    return int(start.split(" ")[1]), dict(line.lower().split(": ", 1) for line in lines), json.loads(body or b"null")


@pytest.mark.parametrize("writes", [1, 40])
def test_llm_gateways_73_an_agent_that_loses_its_answer_and_repeats_has_one_effect_each(tmp_path, writes):
    """Essay A: dirty rows fell from 3 per mille to about 0. A thousand sends of one write, and of 40, under faults."""
    chance = random.Random(7)
    effects: dict[str, int] = {}

    async def script(_stand_in, hit, writer):
        what = hit.said["messages"][0]["content"]
        fate = chance.random()
        if fate < 0.1:
            writer.write(whole({"error": {"message": "slow down"}}, "400 Bad Request"))  # refused: no effect
            return
        effects[what] = effects.get(what, 0) + 1
        if fate < 0.2:
            writer.close()  # done, and the answer is lost
            return
        writer.write(whole(UNARY))

    async def one(port, number):
        leaves = 0.003 if chance.random() < 0.3 else None
        return await send(port, request(number % writes, content=f"row {number % writes}"), leaves_after_s=leaves)

    async def scene():
        async with keeping(script, tmp_path) as (running, _):
            answers = []
            for start in range(0, 1_000, 10):
                answers += await asyncio.gather(*(one(running.port, start + number) for number in range(10)))
        assert len(effects) == writes
        assert set(effects.values()) == {1}
        assert {answer[0] for answer in answers if answer} <= {200, 400, 409, 502}

    asyncio.run(scene())


def test_a_caller_that_left_gets_its_answer_when_it_asks_again(tmp_path):
    async def script(stand_in, _hit, writer):
        await stand_in.go_on.wait()
        writer.write(whole(UNARY))

    async def scene():
        async with keeping(script, tmp_path) as (running, _):
            assert await send(running.port, request(1), leaves_after_s=0.05) is None
            await eventually(lambda: running.stand_in.hits)
            status, fields, said = await send(running.port, request(1))
            assert (status, said["error"]["code"], fields["retry-after"]) == (409, "caller_write_in_flight", "2")
            running.stand_in.go_on.set()
            await eventually(lambda: not running.gate.pump.open and not running.gate.callers.once._tasks)
            status, fields, said = await send(running.port, request(1))
            assert (status, said) == (200, UNARY)
            assert fields["x-swarmgate-replayed"] == "true"
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())


def test_p4_the_answer_of_a_caller_that_left_without_reading_it_is_read_to_its_end(tmp_path):
    async def script(_stand_in, _hit, writer):
        writer.write(whole(UNARY | {"id": "x" * 20_000_000}))

    async def scene():
        async with keeping(script, tmp_path) as (running, _):
            link = socket.create_connection(("127.0.0.1", running.port))
            with link:
                link.sendall(request(1))
                await eventually(lambda: any(one.paused for one in running.gate.exchanges.live))
            await eventually(lambda: not running.gate.pump.open and not running.gate.callers.once._tasks)
            status, _, said = await send(running.port, request(1))
            assert (status, said["error"]["code"]) == (409, "caller_write_done")
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())


def test_the_same_key_with_other_content_is_refused(tmp_path):
    async def scene():
        async with keeping(unary_once, tmp_path) as (running, _):
            assert (await send(running.port, request(1, key="k-1")))[0] == 200
            status, _, said = await send(running.port, request(1, key="k-1", content="other"))
            assert (status, said["error"]["code"]) == (422, "caller_write_mismatch")
            assert (await send(running.port, request(1, key="k-2", content="other")))[0] == 200
            assert len(running.stand_in.hits) == 2

    asyncio.run(scene())


def test_what_a_write_came_to_is_told_again_until_the_control_process_hears_it(tmp_path):
    """Else every repeat would be told that the first still runs, until the gate is started anew."""

    async def script(stand_in, _hit, writer):
        await stand_in.go_on.wait()
        writer.write(whole(UNARY))

    async def scene():
        async with keeping(script, tmp_path) as (running, records):
            first = asyncio.get_running_loop().create_task(send(running.port, request(1)), name="first")
            await eventually(lambda: running.stand_in.hits)
            records.is_away = True
            running.stand_in.go_on.set()
            assert (await first)[0] == 200
            records.is_away = False
            assert (await send(running.port, request(1)))[2]["error"]["code"] == "caller_write_in_flight"
            await eventually(lambda: not running.gate.callers.once._tasks)
            status, fields, _ = await send(running.port, request(1))
            assert (status, fields["x-swarmgate-replayed"]) == (200, "true")
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())


def test_a_write_that_is_on_file_and_never_went_is_free_again(tmp_path):
    """The control process was slow or killed after it had it on file: nothing left, so nothing is in flight."""

    async def scene():
        async with keeping(unary_once, tmp_path) as (running, records):
            records.is_mute = True
            assert (await send(running.port, request(1)))[2]["error"]["code"] == "gate_records_lost"
            records.is_mute = False
            await eventually(lambda: not running.gate.callers.once._tasks)
            assert (await send(running.port, request(1)))[0] == 200
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())


def test_ti_02_a_key_is_its_tenants_and_its_requests(tmp_path):
    """Two teams, one idempotency key, one body: each has an effect and an answer of its own; another path or body is a mismatch."""

    async def scene():
        async with keeping(numbered, tmp_path) as (running, _):
            scopes = {key_hash(f"sgk_{team}", b"p"): Scope(team, team) for team in ("red", "blue")}
            running.gate.ask_for_keys(required=True).replace(b"p", scopes)

            async def ask(team, path=b"/v1/chat/completions", **said):
                raw = request(1, **{"key": "shared"} | said).replace(b"/v1/chat/completions", path)
                named = raw.replace(b"host: g", b"host: g\r\nx-swarmgate-key: sgk_" + team)
                status, fields, told = await send(running.port, named)
                return status, fields.get("x-swarmgate-replayed"), told.get("id") or told["error"]["code"]

            teams = (b"red", b"blue", b"red", b"blue")
            answers = [await ask(team) for team in teams]
            operations = [await ask(team, key=None) for team in teams]
            others = [await ask(b"red", content="other"), await ask(b"red", b"/v1/completions")]
            assert len(running.stand_in.hits) == 4
            return answers, operations, others

    answers, operations, others = asyncio.run(scene())
    for first, second, *again in (answers, operations):
        assert (first[:2], second[:2]) == ((200, None), (200, None))
        assert first[2] != second[2]
        assert again == [(200, "true", first[2]), (200, "true", second[2])]
    assert others == [(422, None, "caller_write_mismatch")] * 2


def test_sc_06_a_write_whose_key_is_revoked_before_it_goes_does_not_go_and_is_free_again(tmp_path):
    async def scene():
        async with keeping(unary_once, tmp_path) as (running, _):
            scopes = {key_hash(f"sgk_{name}", b"p"): Scope(name, "red") for name in ("leaked", "good")}
            keeper, ask = running.gate.ask_for_keys(required=True), running.gate.callers.once._ask
            keeper.replace(b"p", scopes)

            async def ask_late(order, **said):
                told = await ask(order, **said)
                if order == "write_begin":
                    keeper.replace(b"p", dict(list(scopes.items())[1:]))
                return told

            running.gate.callers.once._ask = ask_late
            keyed = [
                request(1).replace(b"host: g", b"host: g\r\nx-swarmgate-key: sgk_" + name)
                for name in (b"leaked", b"good")
            ]
            status, _, said = await send(running.port, keyed[0])
            assert (status, said["error"]["code"]) == (401, "caller_key_refused")
            assert not running.stand_in.hits
            await eventually(lambda: not running.gate.callers.once._tasks)
            assert (await send(running.port, keyed[1]))[0] == 200
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())


def test_a_gate_that_stops_tells_what_its_writes_came_to(tmp_path):
    async def script(stand_in, _hit, _writer):
        await stand_in.go_on.wait()

    async def scene():
        async with keeping(script, tmp_path) as (running, _):
            first = asyncio.get_running_loop().create_task(send(running.port, request(1)), name="first")
            await eventually(lambda: running.stand_in.hits)
            await running.gate.stop(0)
            with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file:
                assert file.execute("select standing from writes").fetchall() == [("unknown",)]
            running.stand_in.go_on.set()
            await first

    asyncio.run(scene())


async def unary_once(_stand_in, _hit, writer):
    writer.write(whole(UNARY))


def test_without_its_records_a_keyed_write_does_not_leave(tmp_path):
    async def scene():
        async with keeping(unary_once, tmp_path) as (running, records):
            records.is_away = True
            status, _, said = await send(running.port, request(1))
            assert (status, said["error"]["code"]) == (503, "gate_records_lost")
            records.is_away = False
            assert (await send(running.port, request(1)))[0] == 200
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())


def test_lg_02_after_a_sync_that_failed_no_keyed_write_leaves_and_others_do(tmp_path):
    async def scene():
        async with keeping(unary_once, tmp_path) as (running, records):
            journal = SimpleNamespace(writer=SimpleNamespace(durable=True))
            running.gate.keep_writes("run", partial(ask_durably, journal, records.ask))
            assert (await send(running.port, request(1)))[0] == 200
            journal.writer.durable = False
            status, _, said = await send(running.port, request(2))
            assert (status, said["error"]["code"]) == (503, "gate_records_lost")
            plain = request(3).replace(b"x-swarmgate-effect: write\r\n", b"").replace(b"x-swarmgate-op: 3\r\n", b"")
            assert (await send(running.port, plain))[0] == 200
            assert len(running.stand_in.hits) == 2

    asyncio.run(scene())


def test_a_gate_without_control_process_sends_no_keyed_write():
    async def scene():
        async with stage(unary_once) as running:
            assert (await send(running.port, request(1)))[2]["error"]["code"] == "gate_records_lost"
            assert not running.stand_in.hits

    asyncio.run(scene())


def test_an_unusable_key_is_the_callers_error(tmp_path):
    async def scene():
        async with keeping(unary_once, tmp_path) as (running, _):
            status, _, said = await send(running.port, request("seven"))
            assert (status, said["error"]["param"]) == (400, "x-swarmgate-op")
            assert not running.stand_in.hits

    asyncio.run(scene())


def test_a_long_answer_is_given_and_not_kept(tmp_path):
    long = UNARY | {"padding": "x" * 70_000}

    async def script(_stand_in, _hit, writer):
        writer.write(whole(long))

    async def scene():
        async with keeping(script, tmp_path) as (running, _):
            assert (await send(running.port, request(1)))[2] == long
            await eventually(lambda: not running.gate.callers.once._tasks)
            status, _, said = await send(running.port, request(1))
            assert (status, said["error"]["code"]) == (409, "caller_write_done")
            assert len(running.stand_in.hits) == 1

    asyncio.run(scene())
