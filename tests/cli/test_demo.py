import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli import demo as told
from swarmgate.cli.exits import Exit


def run(*arguments):
    return CliRunner().invoke(app, ["demo", *arguments])


def test_a_broken_trace_is_told_by_row_and_column_before_anything_starts(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("t_ms,prompt_tokens,output_tokens\n0,5,6\n1,many,6\n")
    found = run("--trace", str(path))
    assert found.exit_code == Exit.USAGE
    assert "row 3, column prompt_tokens: 'many' is no number" in found.output


def test_a_missing_trace_and_odd_options_are_usage_errors(tmp_path):
    assert run("--trace", str(tmp_path / "none.csv")).exit_code == Exit.USAGE
    assert run("--agents", "1").exit_code == Exit.USAGE
    assert run("--seconds", "1").exit_code == Exit.USAGE


@pytest.mark.parametrize(("drawings", "lines"), [(True, 1), (False, 2)])
def test_where_the_page_stands_is_told_with_its_brackets(drawings, lines, monkeypatch):
    monkeypatch.setattr(told, "can_draw", lambda: drawings)
    out = io.StringIO()
    told.tell_page(Console(file=out), Path("/tmp/run[1]/demo.html"))
    assert "/tmp/run[1]/demo.html" in out.getvalue()
    assert ("pip install matplotlib" in out.getvalue()) is not drawings
    assert len(out.getvalue().splitlines()) == lines
