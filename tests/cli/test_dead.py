"""`swarmgate dead` as people run it, with a gate and a provider that fails until it does not."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "gate"))

from stage import UNARY, stage, whole
from typer.testing import CliRunner

from eventually import eventually
from swarmgate.cli import app
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import Shelf

SECRET = "sk-canary-dead-1"
STEP = {"agent": "a1", "goal": "g1", "priority": "P1"}


def run(*arguments, env=None):
    done = CliRunner().invoke(app, ["dead", *arguments], env=env)
    return done.exit_code, done.output


async def give_up(on, *, body=True):
    """A call that fails to the last: 500 from its only rung until no retry is left."""
    said = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", on.port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\nauthorization: Bearer {SECRET}\r\n"
    head += f"x-swarmgate-agent: a1\r\nx-swarmgate-goal: g1\r\ncontent-length: {len(said)}\r\n\r\n"
    writer.write(head.encode() + said)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert body
    return answer


def test_a_letter_is_listed_shown_sent_again_once_and_dropped(tmp_path):
    healthy = asyncio.Event()

    async def script(_stand_in, _hit, writer):
        writer.write(whole(UNARY) if healthy.is_set() else whole({"error": {"message": "oops"}}, "500 Oops"))

    async def scene():
        async with stage(script) as on:
            on.gate.keep_letters(Shelf(tmp_path), bodies=True)
            await give_up(on)
            await eventually(lambda: Shelf(tmp_path).letters())
            assert on.ends == ["dead_lettered"]
            hits = len(on.stand_in.hits)
            (letter,) = json.loads((await asyncio.to_thread(run, "list", "--state", str(tmp_path), "--json"))[1])
            assert (letter["step"]["agent"], letter["step"]["goal"], letter["attempts"]) == ("a1", "g1", hits)
            assert letter["model"] == "m"  # its rung names none
            code, shown = await asyncio.to_thread(run, "show", letter["id"], "--state", str(tmp_path))
            assert code == 0
            assert "hello" in shown
            assert SECRET not in shown
            healthy.set()
            arguments = ("replay", letter["id"], "--state", str(tmp_path), "--gate", f"http://127.0.0.1:{on.port}")
            code, answer = await asyncio.to_thread(run, *arguments)
            assert (code, answer.splitlines()[0]) == (0, "200")
            code, again = await asyncio.to_thread(run, *arguments)
            assert code == 2
            assert "sent already" in again
            assert len(on.stand_in.hits) == hits + 1
            assert on.stand_in.hits[-1].said["messages"][0]["content"] == "hello"
            assert Shelf(tmp_path).letter(letter["id"]).replays == {"first": "200"}
            assert "given up" in (await asyncio.to_thread(run, "list", "--state", str(tmp_path)))[1]
            assert (await asyncio.to_thread(run, "drop", letter["id"], "--state", str(tmp_path)))[0] == 0
            assert (await asyncio.to_thread(run, "list", "--state", str(tmp_path)))[1].strip() == "no dead letters"

    asyncio.run(scene())


def test_a_replay_that_is_given_up_too_is_still_one_letter(tmp_path):
    async def script(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "oops"}}, "500 Oops"))

    async def scene():
        async with stage(script) as on:
            on.gate.keep_letters(Shelf(tmp_path), bodies=True)
            await give_up(on)
            await eventually(lambda: Shelf(tmp_path).letters())
            (letter,) = Shelf(tmp_path).letters()
            arguments = (letter.id, "--state", str(tmp_path), "--gate", f"http://127.0.0.1:{on.port}")
            assert (await asyncio.to_thread(run, "replay", *arguments))[0] == 1
            await eventually(lambda: on.ends == ["dead_lettered"] * 2)
            assert not any("replay-of" in str(hit.headers) for hit in on.stand_in.hits)
            await give_up(on)
            await eventually(lambda: len(Shelf(tmp_path).letters()) == 2)  # another call's, kept by the same threads
            assert [one.replays for one in Shelf(tmp_path).letters()] == [{"first": "502"}, {}]
            assert "first was sent already (502)" in (await asyncio.to_thread(run, "replay", *arguments))[1]
            shown = (await asyncio.to_thread(run, "show", letter.id, "--state", str(tmp_path)))[1]
            assert "sent again: first: 502" in shown
            assert "replay-of" not in shown

    asyncio.run(scene())


def test_a_replay_whose_answer_is_lost_is_told_as_sent_and_stands_in_the_audit(tmp_path):
    letter = Letter("req-1", 1, "target_error", "up", "m", 4, STEP, "POST", "/v1/chat/completions", [], b"{}")
    Shelf(tmp_path).put(letter, 1)

    async def scene():
        async with deaf(callers=2) as port:
            arguments = ("replay", letter.id, "--state", str(tmp_path), "--gate", f"http://127.0.0.1:{port}")
            code, said = await asyncio.to_thread(run, *arguments)
            assert (code, "was sent as first, and no whole answer came" in said) == (1, True)
            assert Shelf(tmp_path).letter(letter.id).replays == {"first": "no answer"}
            assert [change.what for change in Audit(tmp_path).read().changes] == ["dead letter replayed as first"]
            assert (await asyncio.to_thread(run, *arguments))[0] == 2

    asyncio.run(scene())


@contextlib.asynccontextmanager
async def deaf(callers):
    """A port where whoever says something is left without an answer; it is closed when so many have gone."""

    left = []

    async def leave(reader, writer):
        await reader.read(1)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        left.append(writer)

    async with await asyncio.start_server(leave, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await eventually(lambda: len(left) == callers)


def test_without_bodies_a_replay_says_so(tmp_path):
    async def script(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "oops"}}, "500 Oops"))

    async def scene():
        async with stage(script) as on:
            on.gate.keep_letters(Shelf(tmp_path), bodies=False)
            await give_up(on)
            await eventually(lambda: Shelf(tmp_path).letters())
        (letter,) = Shelf(tmp_path).letters()
        code, said = await asyncio.to_thread(run, "replay", letter.id, "--state", str(tmp_path))
        assert code == 1
        assert "not to keep bodies" in said

    asyncio.run(scene())


def test_no_gate_and_no_letter(tmp_path):
    assert run("show", "none", "--state", str(tmp_path))[0] == 2
    assert run("drop", "../x", "--state", str(tmp_path))[0] == 2
    Shelf(tmp_path).put(Letter("req-1a-7", 1, "target_error", "up", "m", 4, STEP, "POST", "/v1/x", [], b"{}"), 1)
    for command in ("show", "replay", "drop"):
        assert "no dead letter here; nearest is 'req-1a-7'" in run(command, "req-1-7", "--state", str(tmp_path))[1]
    for command in (("list",), ("show", "x"), ("replay", "x"), ("drop", "x")):
        code, said = run(*command, "--state", str(tmp_path / "gone"))
        assert (code, "--state names the folder" in said) == (2, True), said


def test_az_12_what_an_agent_calls_itself_is_shown_as_it_is(tmp_path):
    name = "[/red][link=http://evil]x"
    step = STEP | {"agent": name}
    letter = Letter("req-1", 1, "target_error", "up", "m", 4, step, "POST", "/v1/chat/completions", [], b"{}")
    Shelf(tmp_path).put(letter, 1)
    code, said = run("list", "--state", str(tmp_path), env={"COLUMNS": "200"})
    assert (code, name in said) == (0, True), said
