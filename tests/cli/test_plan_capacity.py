"""The users' own arithmetic as they read it, and what cannot be planned."""

import json

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.exits import Exit


def plan(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["plan-capacity", *arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (),
            (
                "100.0",
                "2,000 agents x 3 a minute / 60",
                "48,000,000",
                "6,000 calls x 8,000 tokens",
                "260",
                "100.0/s x 2 s x 1.3",
            ),
        ),
        (("--context", "32000"), ("192,000,000", "60   each 4,000,000 tokens a minute, 80 % used")),
        (("--key-rpm", "500", "--key-tpm", "0"), ("15   each 500 calls a minute",)),
        (("--key-tpm", "0"), ("no limit was given",)),
        (("--response-s", "3000"), ("4,096", "the most that one target gets")),
        (("--output", "300", "--model", "gpt-4o-mini"), ("(8,000 + 300) tokens", "USD", "nothing from a cache")),
        (("--trace", "mix"), ("keys, sized by peak", "fails at the peak", "in tiers", "saves")),
        (("--trace", "chatdev"), ("unfit for sizing: use the mix",)),
    ],
)
def test_every_figure_says_how_it_comes_about_within_80_columns(arguments, words):
    found = plan(*arguments)
    assert found.exit_code == Exit.OK
    assert [word for word in words if word not in found.output] == []
    assert max(map(len, found.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--rate", "nan"), "rate: nan"),
        (("--rate", "inf"), "rate: inf"),
        (("--rate", "-1"), "rate: -1"),
        (("--trace", "nobody"), "'nobody' is no file"),
        (("--model", "gpt-9z"), "nearest:"),
        (("--agents", "0"), "Invalid value"),
        (("--response-s", "nan"), "Invalid value"),
    ],
)
def test_what_cannot_be_planned_is_a_usage_error(arguments, reason):
    found = plan(*arguments)
    assert found.exit_code == Exit.USAGE
    assert reason in found.output


def test_programs_get_the_same_figures():
    found = json.loads(plan("--json").output)
    assert (found["calls_per_s"], found["peak_tokens"], found["pool"], found["keys"]) == (100, 48_000_000, 260, 15)
