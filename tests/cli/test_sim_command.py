"""`swarmgate sim` as a user meets it: its figures, what it says of a smaller run, and of what it cannot run."""

import json

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.lab.scenario_file import shipped

SMALL = ("--agents", "8", "--seconds", "4")
TARGET_KEYS = {"sent", "over_limit", "refused_429", "utilisation"}
FILE = """
duration_s = 4
[[targets]]
name = "t"
[[targets.limits]]
kind = "sliding_log"
limit = 5
window_ms = 1_000
[[loads]]
name = "l"
kind = "fetch"
target = "t"
agents = 2
per_minute = 60
"""


def sim(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["sim", *words])


def test_its_figures_have_the_keys_that_scripts_read_and_come_again_with_their_seed():
    told, again, other = (json.loads(sim("planner", *SMALL, "--json", "--seed", seed).stdout) for seed in "778")
    assert told["scenario"] == "planner"
    assert told["seed"] == 7
    assert {"goodput_ratio", "violations", "trace_hash", "targets", "waits"} <= told.keys()
    assert all(target.keys() >= TARGET_KEYS for target in told["targets"].values())
    assert told["trace_hash"] == again["trace_hash"] != other["trace_hash"]


def test_a_smaller_run_that_misses_a_bound_says_for_whom_it_is():
    done = sim("twenty-keys", *SMALL)
    assert done.exit_code == 1
    assert "its bounds are for" in done.stdout
    assert "speedup_over_one_key" in done.stdout


def test_a_file_is_run_as_it_stands(tmp_path):
    (tmp_path / "s.toml").write_text(FILE, encoding="utf-8")
    done = sim(str(tmp_path / "s.toml"))
    assert done.exit_code == 0
    assert "its bounds" not in done.stdout


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("limit = 5", "targets[0].limits[0].limit: is missing"),
        ("limit = 5 -> limt = 5", "s.toml:7: targets[0].limits[0].limt: is unknown; nearest is 'limit'"),
        (
            "limit = 5 -> limit = 9007199254740992",
            "s.toml:7: targets[0].limits[0].limit: must lie between 0 and 2^51 - 1",
        ),
        ("limit = 5 -> limit = -1", "limit: must be at least 1; found -1"),
        ('target = "t" -> target = "u"', "s.toml:12: loads[0].target: 'u' is not there"),
    ],
)
def test_what_cannot_be_run_is_told_with_its_line(tmp_path, wrong, told):
    before, _, after = wrong.partition(" -> ")
    (tmp_path / "s.toml").write_text(FILE.replace(before, after), encoding="utf-8")
    done = sim(str(tmp_path / "s.toml"))
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("name", "told"), [("p2-flod", ", ".join(shipped())), ("nowhere.toml", "cannot be read: No such file")]
)
def test_what_is_not_there(name, told):
    done = sim(name)
    assert done.exit_code == 2
    assert told in done.stderr
