"""Which state folder a command takes that was given none: that of the gate at its port, whatever address that listens on."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
import typer
from test_key_commands import COMMAND, status
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.folder import folder_of
from swarmgate.control.link import SOCKET

PORT = 8787


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def kept(monkeypatch):
    """An empty home of state folders, with a name that is short enough for sockets below it."""
    home = Path(tempfile.mkdtemp(prefix="sg-"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    yield home / "swarmgate"
    shutil.rmtree(home)


@contextlib.contextmanager
def gates(kept, *hosts):
    """Gates of addresses at one port, as far as commands look: somebody listens at their doors."""
    with contextlib.ExitStack() as stack:
        for host in hosts:
            folder = kept / f"{host}-{PORT}"
            folder.mkdir(parents=True)
            door = stack.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(str(folder / SOCKET))
            door.listen()
        yield


def test_a_folder_that_was_named_is_the_one(kept, tmp_path):
    with gates(kept, "127.0.0.1"):
        assert folder_of(tmp_path, PORT) == tmp_path


def test_without_any_it_is_that_of_loopback(kept):
    assert folder_of(None, PORT) == kept / f"127.0.0.1-{PORT}"


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "192.0.2.7", "__"])
def test_it_is_that_of_the_gate_which_runs(kept, host):
    (kept / f"127.0.0.1-{PORT}").mkdir(parents=True) if host != "127.0.0.1" else None
    with gates(kept, host):
        assert folder_of(None, PORT) == kept / f"{host}-{PORT}"
        assert folder_of(None, PORT + 1) == kept / f"127.0.0.1-{PORT + 1}"


def test_that_of_a_gate_which_ran_is_taken_and_said_where_there_are_others(kept, capsys):
    (kept / f"0.0.0.0-{PORT}").mkdir(parents=True)
    assert folder_of(None, PORT) == kept / f"0.0.0.0-{PORT}"
    assert capsys.readouterr().err == ""
    (kept / f"127.0.0.1-{PORT}").mkdir()
    assert folder_of(None, PORT) == kept / f"127.0.0.1-{PORT}"
    assert "--state names another" in capsys.readouterr().err


def test_of_two_that_run_none_is_guessed(kept, capsys):
    with gates(kept, "127.0.0.1", "192.0.2.7"), pytest.raises(typer.Exit) as ended:
        folder_of(None, PORT)
    assert ended.value.exit_code == 2
    assert f"192.0.2.7-{PORT}" in capsys.readouterr().err


def test_a_key_that_is_made_as_up_says_is_good_beyond_loopback(kept, tmp_path):
    port = free_port()
    file = tmp_path / "swarmgate.toml"
    file.write_text(
        f'listen = "0.0.0.0:{port}"\n[access]\nagent_keys = "required"\n'
        '[targets.up]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = { a = "env:K" }\n[routes]\nm = "up/m"\n'
    )
    command = [COMMAND, "up", "--config", str(file), "--operator-port", str(free_port())]
    with subprocess.Popen(
        command, env=os.environ | {"K": "k"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as up:
        try:
            assert up.stdout.readline()  # it serves
            done = CliRunner().invoke(app, ["keys", "create", "reader", "--port", str(port)])
            assert done.exit_code == 0
            assert status(f"http://127.0.0.1:{port}", done.stdout.split()[0]) == 200
            assert status(f"http://127.0.0.1:{port}", "sgk_other") == 401
        finally:
            up.terminate()
            up.wait(60)
