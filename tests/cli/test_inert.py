"""AZ-11, AZ-12: whatever agents, targets and operators write, no command lets it move a cursor, name a style or begin a formula."""

import csv
import io
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.control.answers import WAYS
from swarmgate.core.scope import Scope
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import Shelf
from swarmgate.stores.sql.agent_keys import AgentKeys

sys.path.insert(0, str(Path(__file__).parents[1] / "control"))
from story import Story, import_all

MARKUP = "[/red][link=http://evil]x"
TEXT = f"=1+1\x1b]0;owned\x07\x9b31m\u202e\r{MARKUP}"
FROM = ("--from", "2026-09-01", "--to", "2026-10-30")
COMMANDS = [
    ("why", "req-1"),
    ("why", "req-2"),
    ("why", "req-3"),
    *[("costs", "--by", way, *FROM) for way in WAYS],
    ("report", "--target", "up", *FROM),
    ("audit",),
    ("dead", "list"),
    ("dead", "show", "req-9"),
    ("keys", "list"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    story = Story(folder)
    story.boot()
    story.revision(author=TEXT, reason=TEXT)
    said = {"agent": TEXT, "goal": TEXT, "step": TEXT, "task": TEXT, "task_type": TEXT, "model": TEXT}
    story.answered("req-1", **said, team=TEXT)
    story.ends(story.leaves("req-2", **said), kind="rate", end="failed", status=429, reason=TEXT, end_reason=TEXT)
    story.deferred("req-3", budget=TEXT, agent=TEXT, goal=TEXT, step=TEXT)
    import_all(story.write().folder).close()
    Audit(folder).add(1, TEXT, "limit set", TEXT, old={TEXT: TEXT}, new={TEXT: TEXT}, reason=TEXT)
    Shelf(folder).put(
        Letter("req-9", 1, TEXT, TEXT, TEXT, 4, {"agent": TEXT}, "POST", f"/{TEXT}", [(TEXT, TEXT)], TEXT.encode()), 1
    )
    with closing(AgentKeys.opened(folder)) as keys:
        keys.create(MARKUP, Scope("", "", (TEXT,), (TEXT,)), 1)
    return folder


def told(folder, *command):
    done = CliRunner().invoke(app, [*command, "--state", str(folder)], env={"COLUMNS": "400", "TERM": "xterm"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_az_12_no_command_lets_it_move_a_cursor_or_name_a_style(folder, command):
    said = told(folder, *command)
    assert [letter for letter in said if not letter.isprintable() and letter != "\n"] == []
    if command[0] != "costs" or command[2] not in {"target", "key", "context"}:  # which nobody else names
        assert "owned" in said or MARKUP in said
        assert "[link=http://evil]" in "".join(said.split())


@pytest.mark.parametrize("way", WAYS)
def test_az_11_no_cell_of_a_spreadsheet_is_a_formula(folder, way):
    rows = list(csv.reader(io.StringIO(told(folder, "costs", "--by", way, *FROM, "--csv"))))
    assert len(rows) > 1
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
