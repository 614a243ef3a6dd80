"""`swarmgate budgets` before a running gate, and before none."""

import asyncio
import io
import json
import socket
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from eventually import eventually
from swarmgate.cli import app
from swarmgate.cli.budgets import amount, table, targets, watching
from swarmgate.cli.exits import Exit
from swarmgate.core.scope import Scope, key_hash

sys.path.append(str(Path(__file__).parents[1] / "gate"))
from stage import stage

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY", second = "env:KEY" }}
limits = ["2 concurrent"]
key_limits = ["600 per 60s"]
"""


def call(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["budgets", *words])


def before_gate(*words, prepare=lambda gate: None, during=None):
    async def play():
        async with stage(text=TEXT) as running:
            prepare(running.gate)
            gate = f"http://127.0.0.1:{running.port}"
            calling = asyncio.ensure_future(asyncio.to_thread(call, *words, "--gate", gate))
            if during is not None:
                await during(running.gate)
            return await calling

    return asyncio.run(play())


def test_a_table_of_what_is_left():
    result = before_gate(prepare=lambda gate: gate.operator.pause("up/first: requests per 60s"))
    assert result.exit_code == Exit.OK, result.output
    for words in ("up: concurrent", "paused", "when a person acts", "ready", "Targets"):
        assert words in result.output


def test_money_is_told_in_dollars():
    row = {"budget": "agent q: USD per 86400s", "state": "ready", "revision": 1, "unit": "micro", "limit": 2_500_000}
    row |= {"remaining": dict.fromkeys(("P0", "P1", "P2"), 2_499_888), "backlog": dict.fromkeys(("P0", "P1", "P2"), 0)}
    row |= {"units_free_in_ms": {"P1": 0}, "certain_in_ms": {"P1": 0}, "window_ms": 86_400_000}
    page = io.StringIO()
    Console(file=page, width=200).print(table([row]))
    assert page.getvalue().count("2.499888") == 3
    assert amount(row) == "2.5 USD per 86400s"
    assert amount(row | {"unit": "requests", "limit": 2_500_000}) == "2,500,000 per 86400s"


def test_a_gate_that_asks_for_keys_is_shown_one(monkeypatch):
    def prepare(gate):
        gate.ask_for_keys(required=True).replace(b"p", {key_hash("sgk_a", b"p"): Scope("1")})

    refused = before_gate(prepare=prepare)
    assert (refused.exit_code, "asks agents for a key" in refused.output) == (Exit.USAGE, True)
    monkeypatch.setenv("SWARMGATE_KEY", "sgk_a")
    assert before_gate(prepare=prepare).exit_code == Exit.OK


def test_a_limit_that_stands_over_the_file_is_told():
    result = before_gate(prepare=lambda gate: gate.operator.limit("up/first: requests per 60s", 300))
    assert "up/first: requests per 60s: 300 per 60s stands over the file's 600 per 60s" in result.output


def test_what_policies_that_only_watch_have_held_back():
    quiet = {"budget": "papers: concurrent", "held_back": 0}
    row = {
        "policy": "papers",
        "passed": 1_240,
        "held_back": 60,
        "budgets": [{"budget": "papers: requests per 1s", "held_back": 60}, quiet],
    }
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(watching([row]))
    text = console.export_text()
    assert all(words in text for words in ("papers: requests per 1s: 60", "1,240", "only watch"))
    assert "concurrent" not in text


def test_the_same_for_programs():
    said = json.loads(before_gate("--json", "--units", "2", "--target", "up").output)
    assert [row["target"] for row in said["targets"]] == ["up"]
    assert {row["units"] for row in said["budgets"]} == {2}


@pytest.mark.parametrize("words", [["--watch", "--json"], ["--watch"]])
def test_watching_goes_on_until_the_gate_ends(words):
    async def during(gate):
        await eventually(lambda: len(gate.window.events) and gate.window.events._seen)
        gate.operator.pause("up")
        gate.window.events.look()
        gate.window.events.close()

    result = before_gate(*words, during=during)
    assert result.exit_code == Exit.OK, result.output
    if "--json" in words:
        first, second = (json.loads(line) for line in result.output.splitlines())
        assert {row["state"] for row in first["budgets"]} == {"ready"}
        assert {row["state"] for row in second["budgets"]} == {"paused"}


def test_a_target_that_is_not_there_is_named():
    result = before_gate("--target", "down")
    assert result.exit_code == Exit.USAGE
    assert "down" in result.output


def test_no_gate_is_said_and_is_no_traceback():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        result = call("--gate", f"http://127.0.0.1:{free.getsockname()[1]}")
    assert result.exit_code == Exit.UNREACHABLE
    assert "no gate answers" in result.output


@pytest.mark.parametrize("gate", ["127.0.0.1:8787", "ftp://127.0.0.1", "http://x:99999", "http://"])
def test_what_is_no_url_of_a_gate_is_said(gate):
    assert call("--gate", gate).exit_code == Exit.USAGE


def test_az_12_a_name_in_brackets_is_no_markup():
    left = {"P0": 1, "P1": 1, "P2": 1}
    row = {"budget": "agent [/red]a: requests per 60s", "target": "agent [/red]a", "state": "ready", "remaining": left}
    row |= {"backlog": left, "units_free_in_ms": left, "certain_in_ms": left, "revision": 1, "unit": "requests"}
    target = {
        "target": "http://[::1]:80[/b]",
        "model": "[x]",
        "state": "ready",
        "keys": 1,
        "keys_out_for_ms": {"[/k]": 1},
    }
    console = Console(record=True, width=200)
    console.print(table([row]), targets([target]))
    shown = console.export_text()
    for said in (row["budget"], target["target"], "[x]", "[/k] 1 ms"):
        assert said in shown


def test_a_target_that_is_none_is_told_the_nearest():
    result = before_gate("--target", "upp")
    assert (result.exit_code, "has no budget here; nearest is 'up'" in result.output) == (Exit.USAGE, True)
