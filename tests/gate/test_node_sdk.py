"""The official Node SDK, unchanged but for its base URL, against a running gate and a count at the target."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from stage import FINISH, LAST, ROLE, STREAM_HEAD, TARGET, framed, stage, token, whole

pytestmark = pytest.mark.peers

SCRIPT = Path(__file__).with_name("node_sdk.mjs")
INSTALL = ("install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "openai")
INSTALL_S = 60


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The script beside a fresh copy of the SDK; nothing of it outlives the run."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node or npm is not installed: the Node SDK was not tried")
    folder = tmp_path_factory.mktemp("node")
    try:
        installed = subprocess.run([npm, *INSTALL], cwd=folder, capture_output=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not get the Node SDK within {INSTALL_S} s: it was not tried")
    if installed.returncode:
        said = installed.stderr.decode(errors="replace").splitlines()
        pytest.skip(f"npm could not get the Node SDK, so it was not tried: {said[0] if said else 'no reason given'}")
    return Path(shutil.copy(SCRIPT, folder))


async def run(script, on, *cases):
    """What the SDK said of each case, in order."""
    process = await asyncio.create_subprocess_exec(
        "node", script, on.url, ",".join(cases), stdout=asyncio.subprocess.PIPE, cwd=script.parent
    )
    said, _ = await asyncio.wait_for(process.communicate(), 30)
    return [json.loads(line) for line in said.splitlines()]


def test_plain_and_streamed(script):
    async def play():
        async with stage() as on:
            plain, streamed = await run(script, on, "plain", "stream")
            assert plain["text"] == streamed["text"] == "four"
            assert plain["usage"]["total_tokens"] == 12
            assert plain["key"] == "first"
            assert (streamed["chunks"], streamed["counts"]) == (4, 0)  # the count is for the gate, which asked for it
            assert on.ends == ["answered"] * 2
            assert len(on.stand_in.hits) == 2

    asyncio.run(play())


def answered(said, status):
    async def script_(_stand_in, _hit, writer):
        writer.write(whole({"error": said}, status))

    return script_


@pytest.mark.parametrize(
    ("status", "raised"),
    [("400 Bad Request", "BadRequestError"), ("422 Unprocessable Entity", "UnprocessableEntityError")],
)
def test_a_target_s_error_raises_the_right_exception(script, status, raised):
    said = {"message": "the target's own words", "type": "some_error", "code": "bad_thing", "param": None}

    async def play():
        async with stage(answered(said, status)) as on:
            (told,) = await run(script, on, "plain")
            assert (told["raised"], told["status"], told["code"]) == (raised, int(status[:3]), "bad_thing")
            assert "the target's own words" in told["message"]
            assert on.ends == ["failed"]
            assert len(on.stand_in.hits) == 1

    asyncio.run(play())


def test_retries_are_not_multiplied(script):
    async def play():
        async with stage(answered({"message": "down"}, "500 Internal Server Error")) as on:
            (told,) = await run(script, on, "plain")
            assert (told["raised"], told["status"], told["code"]) == ("InternalServerError", 502, "target_error")
            assert len(told["body"]["attempts"]) == len(on.stand_in.hits) == 4  # the gate's; the SDK adds none
            assert on.ends == ["dead_lettered"]

    asyncio.run(play())


def test_a_stream_that_is_cut_raises(script):
    async def cut(_stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(ROLE) + framed(token("fo")))
        await writer.drain()
        writer.close()

    async def play():
        async with stage(cut) as on:
            (told,) = await run(script, on, "stream")
            assert told["raised"] == "APIError"
            assert "ended before it was whole" in told["message"]

    asyncio.run(play())


def test_a_deferral_is_a_rate_limit_error_that_is_not_repeated(script):
    async def play():
        async with stage(text=TARGET + 'limits = ["4 per 60s"]\n') as on:
            *served, told = await run(script, on, *["plain"] * 5)
            assert [one["text"] for one in served] == ["four"] * 4
            assert told["raised"] == "RateLimitError"
            assert told["code"] == told["body"]["deferral"]["reason"] == "policy_rate"
            assert on.ends == ["answered"] * 4 + ["deferred"]
            assert len(on.stand_in.hits) == 4

    asyncio.run(play())


def test_a_target_s_429_is_the_gate_s_business(script):
    turns = iter(range(100))

    async def once(_stand_in, _hit, writer):
        if next(turns):
            writer.write(STREAM_HEAD + framed(token("four")) + framed(FINISH + b"data: [DONE]\n\n") + LAST)
        else:
            error = {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}
            writer.write(whole({"error": error}, "429 Too Many Requests", "retry-after: 1\r\n"))

    two = TARGET.replace('first = "env:KEY"', 'first = "env:KEY", second = "env:KEY"')

    async def play():
        async with stage(once, two) as on:
            (told,) = await run(script, on, "stream")
            assert told["text"] == "four"
            assert on.ends == ["answered"]
            assert len(on.stand_in.hits) == 2

    asyncio.run(play())
