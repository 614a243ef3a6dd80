"""Which state folder a command means: that of a data port, whatever address its gate listens on."""

import os
import sys
from pathlib import Path

import typer

from swarmgate.cli.exits import Exit
from swarmgate.config import Config, Listen
from swarmgate.control import link


def state_folder(listen: Listen) -> Path:
    """Where the gate of a data port keeps what it remembers, unless it is told another place."""
    return _kept() / f"{listen.host}-{listen.port}".replace(":", "_")


def folder_of(state: Path | None, port: int) -> Path:
    """
    The state folder that was named; else that of the gate which runs at a data port, or ran there.

    Ends the program where several run there, at addresses of their own: an order must not go to the wrong one.
    """
    if state is not None:
        return state
    usual = state_folder(Listen(Config.model_fields["listen"].default.host, port))
    there = sorted(folder for folder in _kept().glob(f"*-{port}") if folder.is_dir())
    running = [folder for folder in there if link.runs(folder)]
    if len(running) > 1:
        names = ", ".join(map(str, running))
        print(f"several gates run at port {port}: name one of these with --state: {names}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    if running:
        return running[0]
    chosen = usual if usual in there or not there else there[0]
    if len(there) > 1:
        print(f"no gate runs at port {port}; this is of {chosen}, --state names another", file=sys.stderr)
    return chosen


def _kept() -> Path:
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    return home / "swarmgate"
