"""The command line as a whole: what is read when, and what everybody's help has."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from swarmgate.cli import _COMMANDS, app

ASKED = """
import sys, typer
from swarmgate.cli import app
typer.main.get_command(app).get_command(None, {name!r})
print(sorted(name for name in sys.modules if name.startswith({others!r})))
"""


@pytest.mark.parametrize("name", ["up", "why", "keys"])
def test_a_command_does_not_carry_the_lab(name):
    code = ASKED.format(name=name, others="swarmgate.lab")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_the_help_of_every_command_ends_with_an_example(name):
    command = typer.main.get_command(app).get_command(None, name)
    for one in getattr(command, "commands", {name: command}).values():
        assert one.epilog.startswith(f"Example: {'' if name in {'explain', 'up'} else f'swarmgate {name}'}"), one.name


def test_help_fits_a_narrow_terminal_and_shows_no_value_where_none_is_taken():
    shown = [CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=80).output for name in ("", *_COMMANDS)]
    assert all("<bool>" not in text for text in shown)
    assert all(place.example for _, place in _COMMANDS.values())
    assert {text.count("Example:") for text in shown} == {1}


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_an_example_stands_on_one_line(name):
    command = typer.main.get_command(app).get_command(None, name)
    assert all(len(one.epilog) < 79 for one in (command, *getattr(command, "commands", {}).values()))


def test_a_name_that_is_none():
    done = CliRunner().invoke(app, ["nope"])
    assert done.exit_code == 2
    assert "No such command" in done.output


def test_who_stops_reading_hears_of_no_broken_pipe():
    code = "import sys; from swarmgate.cli import main; sys.argv = ['swarmgate', 'presets', '--json']; main()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
