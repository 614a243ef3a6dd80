"""A whole life of a gate with canaries for secrets: what it leaves behind, says, and shows has none of them (SC-01)."""

import asyncio
import contextlib
import json
import os
import re
import signal
from pathlib import Path

import pytest
from processes import KEY, up
from typer.testing import CliRunner

import canaries
from eventually import eventually
from swarmgate.cli import app
from swarmgate.control.token import FILE

CANARIES = {
    "password in a URL": "canary-a81f-7hq2xw9v",
    "parameter": "canary-b92e-p3kd8ymz",
    "header": "canary-c03d/w6fj+1trb=",
    "cookie": "canary-d14c-n9sg4vle",
    "bearer of a site": "canary-e25b-u5cx0oqi",
    "prompt": "canary-f36a-k8vy2whp",  # of a call that was answered (SC-11)
    "answer": "canary-071f-z4gm7qsj",
}
GIVEN_UP = "kept-9c27-r1do6unx"  # a prompt that dead letters keep, and nothing else
MORE = """[]
[access]
agent_keys = "required"
[egress]
ports = [{port}]
wait = "5s"
[resolve]
"site.test" = "127.0.0.1:{port}"
"""
PAGES = (
    *("/state", "/budgets", "/calls", "/metrics", "/alerts", "/keys", "/openapi.json", "/health/ready", "/revisions"),
    *("/costs?by=key", "/report?target=up", "/dead", "/audit", "/prometheus/rules"),
)
COMMANDS = (
    *(("keys", "list", "--json"), ("audit", "--json"), ("dead", "list", "--json"), ("costs", "--by", "key", "--csv")),
    *(("report", "--target", "up", "--json"), ("report", "--target", "up", "--html"), ("check",)),
)
PUBLIC = re.compile("sgk_[0-9a-f]*_|sk-canary-|canary-")  # how secrets may begin, which is no secret


async def echo(reader, writer):
    """A target that fails, and repeats whatever it was told."""
    with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            body = await reader.readexactly(int(length[1])) if length else b""
            status = b"401 No" if b"refuse" in body else b"500 Down" if b"fail" in body + head else b"200 OK"
            told = KEY if KEY.encode() in head else "none"
            said = json.dumps({"error": {"message": f"Incorrect API key provided: {told}"}}).encode()
            if status == b"200 OK":
                text = CANARIES["answer"] if CANARIES["prompt"].encode() in body else "four"
                choice = {"message": {"role": "assistant", "content": text}}
                said = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
            writer.write(b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n" % status)
            writer.write(b"content-length: %d\r\n\r\n%b" % (len(said), said))
            await writer.drain()


async def live(gate, port):
    """Do everything that handles a secret; what was answered to whom has no key, and what is left is looked at later."""
    told = []

    def chat(content, **more):
        return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **more}).encode()

    async def ask(method, path, said=b"", **headers):
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        told.append(await raw(gate.port, method, path, {"x-swarmgate-key": agent, **fields}, said))

    agent = (await gate.operate("POST", "/keys", {"name": "a", "team": "red"})).said["key"]
    path, prompt = "/v1/chat/completions", CANARIES["prompt"]
    answered = await raw(gate.port, "POST", path, {"x-swarmgate-key": agent}, chat(prompt))
    assert CANARIES["answer"].encode() in answered
    await ask("POST", path, chat(GIVEN_UP, stop="fail"), x_swarmgate_wait="5s")
    assert b"502" in told[-1].split(b"\r\n")[0]
    await ask("POST", "/v1/files", b"{}", idempotency_key="k1")
    site = f"/to/http/ann:{CANARIES['password in a URL']}@site.test:{port}/fail?api_key={CANARIES['parameter']}"
    await ask("GET", site, private_token=CANARIES["header"], cookie=f"s={CANARIES['cookie']}")
    await ask("GET", site, authorization=f"Bearer {CANARIES['bearer of a site']}", x_swarmgate_agent="a1")
    await ask("GET", site.replace("canary-a81f", agent))  # who mistakes one place for another is told, and not shown
    await ask("GET", "/swarmgate/v1/calls", x_swarmgate_agent=agent)
    await ask("POST", path, chat(prompt), x_swarmgate_goal=agent)
    await ask("POST", f"/as/key={agent}{path}", chat(prompt))
    await ask("GET", "/swarmgate/v1/calls")
    await ask("POST", path, chat(prompt, stop="refuse"))  # takes the key out, and its answer had it
    await ask("POST", path, chat("again"))
    letters = (await gate.operate("GET", "/dead")).said
    paths = [*PAGES, *[f"/dead/{one['id']}" for one in letters], *[f"/calls/{one['id']}" for one in letters]]
    return agent, [*told, *[await page(gate, path) for path in paths]]


async def page(gate, path):
    """What the operator port says, whatever form it has."""
    token = (gate.folder / FILE).read_text().strip()
    answer = await raw(gate.operator_port, "GET", path, {"authorization": f"Bearer {token}"})
    assert answer.startswith(b"HTTP/1.1 200"), (path, answer[:200])
    return answer


async def raw(port, method, path, fields, body=b""):
    """The whole answer to one request, with its head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        fields = {"host": f"127.0.0.1:{port}", "content-length": len(body), "connection": "close", **fields}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        return await reader.read()


def commands(folder):
    """What people's own commands print of this folder, exports included."""
    letters = [path.stem for path in (folder / "dead").glob("*.json")]
    for line in (*COMMANDS, *[("why", one) for one in letters], *[("dead", "show", one) for one in letters]):
        at = (str(folder.parent / "gate.toml"),) if line == ("check",) else ()
        at += (str(folder.parent / "report.html"),) if line[-1:] == ("--html",) else ()
        done = CliRunner().invoke(app, [*line, *at, "--state", str(folder)], env={"KEY": KEY})
        assert done.exit_code == 0, (line, done.output)
        yield done.output.encode()


def proc(pid, name):
    return Path(f"/proc/{pid}/{name}").read_bytes()


@pytest.fixture
def _open_to_all():
    """Whoever starts it has left every door open (SC-04): what is made is private all the same."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_to_all")
def test_sc_01_04_11_and_12_no_secret_and_no_prompt_is_left_anywhere_nor_a_core(tmp_path):
    async def play():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with up(tmp_path / "state", port, limits=MORE.format(port=port)) as gate:
            await gate.ready()
            agent, told = await live(gate, port)
            token = (gate.folder / FILE).read_text().strip()
            seen = [proc(gate.child, "environ"), proc(gate.child, "cmdline"), proc(gate.process.pid, "cmdline")]
            for pid in (gate.process.pid, gate.child):
                assert re.search(rb"Max core file size +0 +0 ", proc(pid, "limits"))
            os.kill(gate.child, signal.SIGABRT)
            await eventually(lambda: any("calls go on" in text for text in gate.said), 20)
            assert await gate.end() == 0
        server.close()
        (gate.folder / FILE).unlink()
        printed = b"".join(await asyncio.to_thread(lambda: list(commands(gate.folder))))
        assert list((gate.folder / "dead").glob("*.json"))
        left = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        left |= {
            "what it said": "".join(gate.said).encode(),
            "answers": b"".join(told),
            "processes": b"".join(seen),
            "commands": printed,
        }
        secrets = {**CANARIES, "provider key": KEY, "agent key": agent, "operator token": token}
        found = [
            (name, where)
            for name, secret in secrets.items()
            for spelling in canaries.spellings(PUBLIC.sub("", secret, count=1), canaries.SLICE)
            for where, content in left.items()
            if spelling in content
        ]
        assert not found
        kept = {where for where, content in left.items() if GIVEN_UP.encode() in content}
        assert {where.partition("/dead/")[0] for where in kept} <= {
            "state",
            "answers",
            "commands",
        }  # `dead show` tells them
        assert not [path for path in (tmp_path / "state").rglob("*") if path.stat().st_mode & 0o077]
        assert not (tmp_path / "state").stat().st_mode & 0o022

    asyncio.run(play())


def test_az_01_a_gate_that_asks_for_keys_never_starts_without_who_has_them(tmp_path):
    async def play():
        more = '[]\n[access]\nagent_keys = "required"\n'
        async with up(tmp_path / "state", 9, "--no-control", limits=more) as gate:
            assert await gate.process.wait() == 2
            assert not gate.port
        assert any("the control process has the keys" in text for text in gate.said)

    asyncio.run(play())
