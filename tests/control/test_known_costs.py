"""What nobody bills costs nothing on file; what may cost and is not known stays unknown, and is counted."""

import json

from story import START_MS, Story, import_all, table
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.core.price import flat_cost
from swarmgate.stores.sql import tables

UNREAD = {"prompt_tokens": -1, "output_tokens": -1}
HOUR_MS = 3_600_000


def told(story):
    """What each attempt cost, and what its hour has of each target: cost, and how many are unknown."""
    importer = import_all(story.write().folder, lambda *_: None)
    costs = {row["call"]: row["cost_micro"] for row in table(importer, tables.attempts)}
    hours = {row["target"]: (row["cost_micro"], row["unpriced"]) for row in table(importer, tables.usage)}
    importer.close()
    return costs, hours


def test_what_nobody_bills_is_not_unknown_and_all_else_is(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("get", target="https://a.org", flat_micro=0, note=UNREAD)
    story.ends(story.leaves("gone", target="https://a.org", flat_micro=0), kind="server_error", end="failed", **UNREAD)
    story.answered("post", target="https://b.org", note=UNREAD)
    story.answered("count", target="up", flat_micro=0, note=UNREAD)
    story.answered("model", target="up")
    story.answered("image", target="openai", flat_micro=40_000, note=UNREAD)
    story.ends(story.leaves("failed", target="openai", flat_micro=40_000), kind="server_error", end="failed", **UNREAD)
    costs, hours = told(story)
    assert costs == {
        "get": 0,
        "gone": 0,
        "post": None,
        "count": 0,
        "model": None,  # nobody knows a price here
        "image": 40_000,
        "failed": None,
    }
    assert hours == {"https://a.org": (0, 0), "https://b.org": (0, 1), "up": (0, 1), "openai": (40_000, 1)}


def test_what_was_open_when_its_gate_died_is_unknown_unless_nobody_bills_it(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.leaves("get", target="https://a.org", flat_micro=0)
    story.leaves("image", target="openai", flat_micro=40_000)
    story.ms += 1
    story.boot("run2")
    costs, hours = told(story)
    assert costs == {"get": 0, "image": None}
    assert hours == {"https://a.org": (0, 0), "openai": (0, 1)}


def test_costs_say_so(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("get", target="https://a.org", flat_micro=0, note=UNREAD)
    story.answered("post", target="https://b.org", note=UNREAD)
    import_all(story.write().folder).close()
    words = [
        "costs",
        "--by",
        "target",
        "--from",
        "2026-09-21T00:00",
        "--to",
        "2026-09-22T00:00",
        "--state",
        str(tmp_path),
    ]
    assert START_MS // 86_400_000 == 20_717  # that day
    rows = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert {row["target"]: row["unpriced"] for row in rows} == {"https://a.org": 0, "https://b.org": 1}
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, words).output
    plain, paid = (next(line for line in shown.splitlines() if name in line) for name in ("a.org", "b.org"))
    assert "0.000000" in plain
    assert "unknown" not in plain
    assert "unknown" in paid


def test_a_flat_cost_is_known_of_what_was_answered_or_is_free():
    assert [flat_cost(micro, is_answered=one) for micro in (-1, 0, 7) for one in (True, False)] == [
        None,
        None,
        0,
        0,
        7,
        None,
    ]
