"""ST-09, ST-11: servers that answer anything but a decision, or too late, or somebody else's."""

import asyncio
import contextlib
import random

import msgspec
import pytest
from gates import ask, asked, opened

from eventually import eventually
from swarmgate.core.answers import Granted
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason

COUNTER = Limits(BudgetKind.COUNTER, burst=10**9, window_ms=86_400_000, slices=24)
INFO = "redis_version:7.2.4\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nrole:master\r\nrun_id:fake\r\n"


@contextlib.asynccontextmanager
async def fake(folder, answers):
    """A server that answers each command by its first word (or what that makes of it); None = it hangs up."""
    serving = set()

    async def serve(reader, writer):
        serving.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while count := int((await reader.readuntil(b"\r\n"))[1:]):
                command = []
                for _ in range(count):
                    size = int((await reader.readuntil(b"\r\n"))[1:])
                    command.append((await reader.readexactly(size + 2))[:-2])
                answer = answers.get(command[0].decode(), b"+OK\r\n")
                if callable(answer):
                    answer = answer(command)
                if answer is None:
                    break
                writer.write(answer)
        writer.close()

    path = folder / "fake"
    server = await asyncio.start_unix_server(serve, path)
    try:
        yield f"unix://{path}"
    finally:
        server.close()
        await ended(serving)


async def ended(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)


def good(**other):
    return {"INFO": f"${len(INFO)}\r\n{INFO}\r\n".encode(), "EXISTS": b":0\r\n"} | other


ERRORS = {
    "-LOADING Valkey is loading the dataset in memory": Reason.GATE_STORE_LOADING,
    "-BUSY Valkey is busy running a script. You can only call SCRIPT KILL": Reason.GATE_STORE_BUSY,
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": Reason.GATE_STORE_READ_ONLY,
    "-READONLY You can't write against a read only replica.": Reason.GATE_STORE_READ_ONLY,
    "-NOREPLICAS Not enough good replicas to write.": Reason.GATE_STORE_READ_ONLY,
    "-CLUSTERDOWN The cluster is down": Reason.GATE_STORE_MOVED,
    "-MOVED 3999 127.0.0.1:1": Reason.GATE_STORE_MOVED,
    "-ASK 3999 127.0.0.1:1": Reason.GATE_STORE_MOVED,
    "-TRYAGAIN Multiple keys request during rehashing of slot": Reason.GATE_STORE_MOVED,
    "-CROSSSLOT Keys in request don't hash to the same slot": Reason.GATE_STORE_BROKEN,
    "-NOAUTH Authentication required.": Reason.GATE_STORE_REFUSED,
    "-WRONGPASS invalid username-password pair or user is disabled.": Reason.GATE_STORE_REFUSED,
    "-NOPERM this user has no permissions to run the 'evalsha' command": Reason.GATE_STORE_REFUSED,
    "-OOM command not allowed when used memory > 'maxmemory'.": Reason.GATE_STORE_FULL,
    "-MISCONF Errors writing to the AOF file: No space left on device": Reason.GATE_STORE_FULL,
    "-WRONGTYPE Operation against a key holding the wrong kind of value": Reason.GATE_STORE_BROKEN,
    "-ERR user_script:1: attempt to index a nil value": Reason.GATE_STORE_BROKEN,
    "+OK": Reason.GATE_STORE_BROKEN,
    ":1": Reason.GATE_STORE_BROKEN,
    "*0": Reason.GATE_STORE_BROKEN,
    "$-1": Reason.GATE_STORE_BROKEN,
    "$5\r\nhello": Reason.GATE_STORE_BROKEN,
    "$4\r\n\x94\x01\x02\x90": Reason.GATE_STORE_BROKEN,
    "?garbage": Reason.GATE_STORE_BROKEN,
    "$100\r\nhalf": Reason.GATE_STORE_SILENT,
}


@pytest.mark.parametrize(("line", "trouble"), ERRORS.items())
def test_whatever_is_no_decision_is_a_typed_loss(tmp_path, line, trouble):
    async def main():
        answers = good(EVALSHA=line.encode("latin-1") + b"\r\n")
        async with fake(tmp_path, answers) as url, opened(url, c=COUNTER) as store:
            assert await asked(store, ask("x", ("c", 1, 0))) == StoreLost(trouble)
            assert store.losses == 1

    asyncio.run(main())


def test_what_was_answered_is_told_though_the_server_dies_with_the_next(tmp_path):
    scripts = []

    def answer(command):
        operations = msgspec.msgpack.decode(command[-1])[-1]
        scripts.append(len(operations))
        if len(scripts) == 3:
            return None
        told = msgspec.msgpack.encode((5, 1, 0, [["granted", 0, 9]] * len(operations)))
        return f"${len(told)}\r\n".encode() + told + b"\r\n"

    async def main():
        async with fake(tmp_path, good(EVALSHA=answer)) as url, opened(url, c=COUNTER) as store:
            await eventually(lambda: scripts == [1])
            events = await asyncio.gather(*[asked(store, ask(f"l{one}", ("c", 1, 0))) for one in range(100)])
            assert events == [Granted(5, 0, 9)] * 64 + [StoreLost(Reason.GATE_STORE_UNREACHABLE)] * 36
            assert scripts == [1, 64, 36]

    asyncio.run(main())


def test_a_server_that_never_answers_the_script_gives_way_to_the_next_which_hears_what_was_kept(tmp_path, server):
    server.client.flushall()

    async def main():
        async with fake(tmp_path, good(EVALSHA=None)) as url, opened(url, server.url, c=COUNTER) as store:
            store.settle("x", (), last=True)
            await eventually(lambda: store.births == 1)
            assert (store.trouble, store.losses) == (None, 1)
            assert isinstance(await asked(store, ask("x", ("c", 1, 0))), Granted)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answers", "trouble"),
    [
        (good(INFO=f"${len(INFO)}\r\n{INFO}\r\n".replace("7.2.4", "6.2.9").encode()), Reason.GATE_STORE_UNFIT),
        (good(EXISTS=b"-LOADING Valkey is loading the dataset in memory\r\n"), Reason.GATE_STORE_LOADING),
        (good(EXISTS=b"-MOVED 1 127.0.0.1:1\r\n"), Reason.GATE_STORE_UNREACHABLE),
        (good(INFO=b"-NOAUTH Authentication required.\r\n"), Reason.GATE_STORE_REFUSED),
        (good(INFO=b"$2\r\nhi\r\n"), Reason.GATE_STORE_BROKEN),
        (good(INFO=b":5\r\n"), Reason.GATE_STORE_BROKEN),
        (good(INFO=None), Reason.GATE_STORE_UNREACHABLE),
    ],
)
def test_a_server_that_is_not_fit_is_not_asked(tmp_path, answers, trouble):
    async def main():
        async with fake(tmp_path, answers) as url, opened(url, c=COUNTER) as store:
            await eventually(lambda: store.trouble is trouble)  # on a busy machine the first answer may come too late
            assert await asked(store, ask("x", ("c", 1, 0))) == StoreLost(trouble)

    asyncio.run(main())


def test_a_node_that_does_not_have_the_slot_says_who_has(tmp_path, cluster):
    async def main():
        answers = good(EXISTS=f"-MOVED 1 127.0.0.1:{cluster.port}\r\n".encode())
        async with fake(tmp_path, answers) as url, opened(url, c=COUNTER) as store:
            assert isinstance(await asked(store, ask("x", ("c", 1, 0))), Granted)

    asyncio.run(main())


@contextlib.asynccontextmanager
async def slow(folder, target, lag_s):
    """A proxy before a real server: each answer is late by `lag_s`()."""
    tasks = set()

    async def pipe(reader, writer, lag_s):
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(65_536):
                await asyncio.sleep(lag_s())
                writer.write(data)
        writer.close()

    async def serve(reader, writer):
        to, back = await asyncio.open_unix_connection(target)
        for pair, lag in ((reader, back), lambda: 0), ((to, writer), lag_s):
            tasks.add(asyncio.ensure_future(pipe(*pair, lag)))

    path = folder / "slow"
    listening = await asyncio.start_unix_server(serve, path)
    try:
        yield f"unix://{path}"
    finally:
        listening.close()
        await ended(tasks)


def test_a_late_answer_is_never_taken_for_anothers(tmp_path, server):
    """Every take has a lease of its own length, which its answer must show."""
    chance = random.Random(7)

    def lag_s():
        return chance.choice((0, 0, 0, 0, 0.001, 0.001, 0.002, 0.1))

    async def one(store, number, heard):
        lease_ms = 1_000_000 + number
        event = await asked(store, ask(f"l{number}", ("c", 0, 1), lease_ms=lease_ms))
        heard.append(event)
        if isinstance(event, Granted):
            assert event.expires_ms - event.now_ms == lease_ms
        else:
            await eventually(lambda: store.trouble is None)

    async def caller(store, first, heard):
        for number in range(first, first + 60):
            await one(store, number, heard)

    async def main():
        server.client.flushall()
        async with slow(tmp_path, server.socket, lag_s) as url, opened(url, c=COUNTER) as store:
            heard = []
            await asyncio.gather(*[caller(store, 1_000 * place, heard) for place in range(20)])
            granted = sum(isinstance(event, Granted) for event in heard)
            assert len(heard) == 1_200
            assert store.losses >= 3
            assert granted > 600
            # what was granted to nobody is released; what was granted is still held
            await eventually(lambda: int(server.client.hget("{sg:d}b:c", "pending")) == granted)

    asyncio.run(main())
