"""`swarmgate keys` as people run it, beside a gate that asks for keys."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli import keys as cli_keys

COMMAND = str(Path(sys.executable).parent / "swarmgate")
TEXT = """
listen = "127.0.0.1:0"
access = { agent_keys = "required" }
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { k = "env:KEY" }
"""


def keys(state, *arguments, code=0):
    done = CliRunner().invoke(app, ["keys", *arguments, "--state", str(state)])
    assert done.exit_code == code, done.output
    return done.stdout.strip(), done.stderr


@contextlib.contextmanager
def gate(state, tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text(TEXT)
    environment = os.environ | {"KEY": "sk-canary-77"}
    command = [COMMAND, "up", "--config", str(file), "--state", state]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as up:
        try:
            yield up.stdout.readline().partition("=")[2].strip().removesuffix("/v1")
        finally:
            up.terminate()
            up.wait(60)


def status(url, key):
    with contextlib.closing(HTTPConnection(url.removeprefix("http://"), timeout=20)) as connection:
        connection.request("GET", "/swarmgate/v1/budgets", headers={"x-swarmgate-key": key} if key else {})
        return connection.getresponse().status


def test_a_running_gate_hears_of_each_change_at_once_and_az_13_they_stand_in_the_ledger(tmp_path):
    state = str(tmp_path / "state")
    early, said = keys(state, "create", "early")
    assert "the next one there knows the keys" in said
    with gate(state, tmp_path) as url:
        assert status(url, "") == 401
        assert status(url, early) == 200
        late, _ = keys(state, "create", "late", "--team", "lab", "--targets", "up", "--expires-in", "1h")
        assert status(url, late) == 200
        rows = json.loads(keys(state, "list", "--json")[0])
        assert [(row["name"], row["team"], row["targets"]) for row in rows] == [
            ("early", "", ["*"]),
            ("late", "lab", ["up"]),
        ]
        keys(state, "revoke", rows[0]["id"])
        assert status(url, early) == 401
        new, _ = keys(state, "rotate", rows[1]["id"], "--overlap", "1h")
        assert status(url, new) == 200
        assert status(url, late) == 200
        for wrong, said in (("upp", "nearest is 'up'"), ("ann", "one of up")):
            refused = keys(state, "create", "x", "--targets", wrong, code=2)[1]
            assert f"{wrong!r} is no target of this gate; {said}; hosts have dots" in refused
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "ledger.sqlite3")) as link:
        found = link.execute("SELECT key, what, reason FROM key_events ORDER BY seq").fetchall()
    told = [(late, "created"), (early, "revoked"), (late, "rotated"), (new, "created")]
    assert [row[:2] for row in found] == [(key.split("_")[1], what) for key, what in told]
    assert all("@" in author for *_, author in found)


def test_bad_input(tmp_path):
    assert keys(str(tmp_path), "revoke", "none", code=2)[1].startswith("id: 'none' is no key")
    identity = json.loads(keys(str(tmp_path), "create", "reader", "--json")[0])["id"]
    assert f"is no key; nearest is {identity!r}; `swarm" in keys(str(tmp_path), "revoke", f"{identity}0", code=2)[1]
    assert f"is no key; it is the name of {identity}; `swarm" in keys(str(tmp_path), "rotate", "reader", code=2)[1]
    assert keys(str(tmp_path), "create", "x", "--expires-in", "soon", code=2)[1].startswith("--expires-in: 'soon'")
    assert keys(str(tmp_path), "create", "", code=2)[1].startswith("name: ")
    (tmp_path / "file").write_text("x")
    for command in (("list",), ("create", "x")):
        assert str(tmp_path / "file") in keys(str(tmp_path / "file"), *command, code=2)[1]
    gone = tmp_path / "gone"
    for command in (("list",), ("rotate", "x"), ("revoke", "x")):
        assert "--state names the folder" in keys(str(gone), *command, code=2)[1]
    assert not gone.exists()  # whoever looks makes nothing


def test_a_new_key_is_told_with_its_id_and_one_that_has_lapsed_as_such(tmp_path, monkeypatch):
    key, said = keys(str(tmp_path / "state"), "create", "x", "--expires-in", "1s")
    identity = key.split("_")[1]
    assert f"{identity} is made" in said
    assert "good until" in keys(str(tmp_path / "state"), "list")[0]
    monkeypatch.setattr(cli_keys, "unix_ms", lambda: 2**50)
    assert "expired" in keys(str(tmp_path / "state"), "list")[0]
    assert json.loads(keys(str(tmp_path / "state"), "create", "y", "--json")[0])["id"]
