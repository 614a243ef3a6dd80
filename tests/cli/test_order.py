"""`swarmgate pause`, `resume` and `limit` before a gate as people run it, and before none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.exits import Exit

COMMAND = str(Path(sys.executable).parent / "swarmgate")
CONFIGURATION = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
limits = ["600 per 60s", "4 concurrent"]
[teams.lab]
agents = ["*"]
limits = ["5 USD per 1d"]
"""
MONEY = "team lab: USD per 86400s"
BUDGET = "up: requests per 60s"


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A running gate: its state folder and its data port."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "gate.toml").write_text(CONFIGURATION)
    words = [
        "up",
        "--config",
        str(folder / "gate.toml"),
        "--port",
        "0",
        "--state",
        str(folder / "state"),
        "--no-control",
    ]
    process = subprocess.Popen(
        [COMMAND, *words],
        env=os.environ | {"KEY": "sk-1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield folder / "state", process.stdout.readline().partition("=")[2].strip().removesuffix("/v1")
    finally:
        process.terminate()
        process.communicate(timeout=20)


def call(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words))


def order(gate, *words, reason="a test"):
    result = call(*words, "--reason", reason, "--state", str(gate[0]), "--json")
    assert result.exit_code == Exit.OK, result.output
    return json.loads(result.output)


def states(gate):
    said = json.loads(call("budgets", "--gate", gate[1], "--json").output)
    return {row["budget"]: (row["state"], row["limit"], row["window_ms"]) for row in said["budgets"]}


def test_a_target_is_paused_and_goes_on(gate):
    changed = order(gate, "pause", "up")
    assert [one["budget"] for one in changed] == [BUDGET, "up: concurrent"]
    assert {states(gate)[one["budget"]][0] for one in changed} == {"paused"}
    assert order(gate, "pause", "up") == []
    order(gate, "resume", "up")
    assert "paused" not in {state for state, *_ in states(gate).values()}


def test_a_limit_changes_in_force(gate):
    (first,) = order(gate, "limit", BUDGET, "1200")
    (second,) = order(gate, "limit", BUDGET, "90", "--per", "30s")
    assert second["revision"] == first["revision"] + 1
    assert second["policy"] == first["policy"] + 1
    assert states(gate)[BUDGET][1:] == (90, 30_000)


def test_a_limit_in_money_is_said_in_dollars(gate):
    for said, micro in (("2.50", 2_500_000), ("1_000", 1_000_000_000), ("5", 5_000_000)):
        order(gate, "limit", MONEY, said)
        assert states(gate)[MONEY][1] == micro
    order(gate, "limit", MONEY, "2.50")
    said = call("check", str(gate[0].parent / "gate.toml"), "--state", str(gate[0])).output
    assert f"{MONEY}: 2.5 USD per 86400s stands over the file until a restart" in said


def test_people_see_a_table(gate):
    result = call("limit", "up: concurrent", "5", "--reason", "a test", "--state", str(gate[0]))
    assert result.exit_code == Exit.OK
    assert "up: concurrent" in result.output
    again = call("resume", "up", "--reason", "a test", "--state", str(gate[0]))
    assert "was so already" in again.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pause", "nobody"), "`budgets` lists what there is"),
        (("pause", "upp"), "nearest is 'up'; `budgets` lists"),
        (("resume", "UP"), "nearest is 'up'; `budgets` lists"),
        (("limit", "up: request per 60s", "5"), f"nearest is {BUDGET!r}; `budgets` lists"),
        (("limit", "up", "5"), "several limits"),
        (("limit", BUDGET, "0"), "at least 1"),
        (("limit", BUDGET, "5", "--per", "soon"), "--per"),
        (("limit", BUDGET, "2.50"), "amount: '2.50' is no amount of requests"),
        (("limit", BUDGET, "many"), "amount: 'many' is no amount"),
        (("limit", MONEY, "0"), "at least 1"),
        (("limit", BUDGET, "5", "--per", "0s"), "--per: is no time; without it the window stays"),
        (("limit", BUDGET, "5", "--per", "2h"), "another kind"),
    ],
)
def test_what_cannot_be_done_is_said(gate, words, said):
    before = states(gate)
    result = call(*words, "--reason", "a test", "--state", str(gate[0]))
    assert (result.exit_code, said in result.output) == (Exit.USAGE, True), result.output
    assert states(gate) == before


def test_an_order_needs_its_reason(gate):
    assert call("pause", "up", "--state", str(gate[0])).exit_code == Exit.USAGE
    assert call("pause", "up", "--reason", "", "--state", str(gate[0])).exit_code == Exit.USAGE


def test_no_gate_is_said(tmp_path):
    result = call("pause", "up", "--reason", "a test", "--state", str(tmp_path))
    assert result.exit_code == Exit.UNREACHABLE
    assert str(tmp_path) in result.output.replace("\n", "")
