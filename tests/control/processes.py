"""Both processes of a gate as an operator starts them, and a provider that counts for itself: the witness."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from eventually import eventually, eventually_says
from swarmgate.control.token import FILE
from swarmgate.stores.sql import ledger

KEY = "sk-canary-q7wz5k2hxv9t"
COMMAND = [sys.executable, "-c", "from swarmgate.cli import main; main()"]
TEXT = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY" }}
limits = {limits}
"""


class Provider:
    """Answers model calls and counts them by the marker in their body; `hold` keeps answers back."""

    def __init__(self):
        self.hits = Counter()
        self.tokens = Counter()
        self.keys = set()
        self.answered = Counter()
        self.over = 0  # hits that were answered, or whose caller was gone by then
        self.hold = asyncio.Event()
        self.hold.set()
        self.delay_s = 0.0
        self._tasks = set()

    async def serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"content-length: (\d+)", head)[1])
                said = json.loads(await reader.readexactly(length))
                marker = said["messages"][0]["content"]
                self.hits[marker] += 1
                self.keys.add(re.search(rb"authorization: Bearer (\S+)", head)[1].decode())
                await self.hold.wait()
                await asyncio.sleep(self.delay_s)
                output = 1 + len(marker)
                answer = {
                    "choices": [{"message": {"role": "assistant", "content": "x"}}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": output, "total_tokens": 7 + output},
                }
                body = json.dumps(answer).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n%b" % (len(body), body))
                try:
                    await writer.drain()
                finally:
                    self.over += 1
                self.answered[marker] += 1
                self.tokens[marker] += output


class Answered(NamedTuple):
    """A status, and the JSON that came with it."""

    status: int
    said: dict


async def http(port, method, path, headers=(), body=b""):
    """One request on a connection of its own; status 0 where the connection ended without an answer."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return Answered(0, {})
    fields = {"host": f"127.0.0.1:{port}", "content-length": str(len(body)), "connection": "close", **dict(headers)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with contextlib.closing(writer), contextlib.suppress(OSError):
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        raw = await reader.read()
        if raw:
            head, _, rest = raw.partition(b"\r\n\r\n")
            return Answered(int(head.split(b" ")[1]), json.loads(rest) if rest.startswith((b"{", b"[")) else {})
    return Answered(0, {})


class Gate:
    """One `swarmgate up`."""

    def __init__(self, process, folder):
        self.process = process
        self.folder = folder
        self.port = self.operator_port = 0
        self.said = []
        self._reader = asyncio.get_running_loop().create_task(self._read(), name="what the gate says")

    async def _read(self):
        async for line in self.process.stderr:
            text = line.decode()
            self.said.append(text)
            if found := re.search(r"listens on http://127\.0\.0\.1:(\d+)", text):
                self.port = int(found[1])
            if found := re.search(r"operators: http://127\.0\.0\.1:(\d+)", text):
                self.operator_port = int(found[1])

    async def call(self, marker, **headers):
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": marker}]}).encode()
        told = {"content-type": "application/json", "x-swarmgate-agent": "a1", "x-swarmgate-goal": "g1"}
        told["x-swarmgate-step"] = marker
        told |= {f"x-swarmgate-{name}": value for name, value in headers.items()}
        return await http(self.port, "POST", "/v1/chat/completions", told.items(), body)

    async def operate(self, method, path, said=None):
        token = (self.folder / FILE).read_text().strip()
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        return await http(self.operator_port, method, path, headers.items(), json.dumps(said or {}).encode())

    @property
    def child(self):
        """The control process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    async def ready(self):
        """Wait until the operator port says so."""

        async def is_ready():
            return (await self.operate("GET", "/health/ready")).status == 200

        await eventually_says(is_ready, 30)

    async def end(self, sign=signal.SIGTERM):
        """Its exit code, once it and its control process are gone."""
        child = self.child
        self.process.send_signal(sign)
        code = await self.process.wait()
        await eventually(lambda: not Path(f"/proc/{child}").exists(), 30)
        await self._reader
        return code


def query(folder, text):
    with sqlite3.connect(f"file:{folder / ledger.FILE}?mode=ro", uri=True) as opened:
        found = opened.execute(text).fetchall()
    opened.close()
    return found


@contextlib.asynccontextmanager
async def up(folder, provider_port, *arguments, limits="[]", more=""):
    """Start the gate on free ports, `more` in its file, and see to it that nothing of it is left."""
    folder.mkdir(exist_ok=True)
    config = folder.parent / "gate.toml"
    config.write_text(TEXT.format(port=provider_port, limits=limits) + more)
    options = ["--config", str(config), "--port", "0", "--operator-port", "0", "--state", str(folder), *arguments]
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "up",
        *options,
        env=os.environ | {"KEY": KEY},
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    gate = Gate(process, folder)
    try:
        await eventually(lambda: gate.port or process.returncode is not None, 60)
        yield gate
    finally:
        if process.returncode is None:
            await gate.end()


@contextlib.asynccontextmanager
async def provider():
    """A running provider and its port."""
    one = Provider()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    try:
        yield one, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in one._tasks:
            task.cancel()
        await asyncio.gather(*one._tasks, return_exceptions=True)
