"""What nobody counted is told as an estimate wherever money is (llm_gateways 51)."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app

sys.path.insert(0, str(Path(__file__).parents[1] / "control"))
from story import START_MS, Story, import_all

SPAN = ("--from", "2026-09-21T00:00", "--to", "2026-09-22T00:00")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A call that was answered, and one whose caller left."""
    assert START_MS == 1_790_000_000_000  # 2026-09-21
    folder = tmp_path_factory.mktemp("estimates")
    story = Story(folder)
    story.boot()
    story.revision()
    story.answered("whole")
    left = story.leaves("left")
    story.ends(left, kind="given_up", end="cancelled", end_reason="caller_left", output_tokens=90, estimated=True)
    import_all(story.write().folder, lambda _t, _m, sent, got, _c, _at: 1_000 * (sent + got)).close()
    return folder


def told(*arguments, folder):
    done = CliRunner().invoke(app, [*arguments, "--state", str(folder)])
    assert done.exit_code == 0, done.output
    return done.output


def words(text):
    return " ".join(text.split())


def test_costs_hold_it_and_tell_how_much_it_is(folder):
    (row,) = json.loads(told("costs", *SPAN, "--json", folder=folder))
    assert (row["output_tokens"], row["cost_micro"]) == (93, 111_000)
    assert (row["estimated_tokens"], row["estimated_micro"]) == (99, 99_000)
    text = words(told("costs", *SPAN, folder=folder))
    assert "0.111000" in text
    assert "0.099000" in text
    assert "estimated" in text


def test_where_all_is_counted_no_column_speaks_of_estimates(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("whole")
    import_all(story.write().folder, lambda *_: 7).close()
    assert "estimated" not in told("costs", *SPAN, folder=tmp_path)


def test_why_says_that_it_is_one(folder):
    text = words(told("why", "left", folder=folder))
    assert "about 9 tokens in, 90 out" in text
    assert "estimated, since" in text
    assert "estimated" not in told("why", "whole", folder=folder)


def test_so_does_a_report(folder):
    text = told("report", "--target", "up", *SPAN, folder=folder)
    assert "0.111000, of which 0.099000 estimated" in words(text)
    assert json.loads(told("report", "--target", "up", *SPAN, "--json", folder=folder))["estimated_micro"] == 99_000
