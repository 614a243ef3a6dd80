"""`swarmgate up`: the gate in the foreground, its control process beside it, until SIGTERM or Ctrl-C drains both."""

import asyncio
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from swarmgate import __version__
from swarmgate.cli import configured, descriptors
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import state_folder
from swarmgate.cli.itself import itself
from swarmgate.cli.undumped import leave_no_dump
from swarmgate.cli.unpriced import uncounted_costs
from swarmgate.cli.warned import Asked, warned
from swarmgate.config import Config, Listen, load
from swarmgate.config.problems import FileError, Problem
from swarmgate.control import data, token
from swarmgate.core.errors import BadInput
from swarmgate.core.record import Call
from swarmgate.engine.loops import new_event_loop

_FOR_CHECK = frozenset({"out_of_reach", "without_contact"})  # nothing that changes from start to start
EXAMPLE = "Example: OPENAI_API_KEY=... swarmgate up --port 8787"


def up(
    config: Annotated[
        Path | None, typer.Option(help="TOML file; without one OPENAI_API_KEY and ANTHROPIC_API_KEY are used.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Data port; 0 takes a free one.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="Folder of budgets, journal and ledger; by default one per data port.")
    ] = None,
    operator_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Operator port; by default the one after the data port.")
    ] = None,
    no_control: Annotated[
        bool, typer.Option("--no-control", help="Go without the control process: no ledger, no operator port.")
    ] = False,
) -> None:
    """Relay calls through keys and budgets until stopped, and keep the evidence."""
    leave_no_dump()
    if config is None and (hint := configured.unread()):
        _say(hint)
    read = _that_fits(configured.read(config))
    listen = read.listen if port is None else Listen(read.listen.host, port)
    for why in itself(read, listen).values():
        raise _refused(why)
    for why in uncounted_costs(read).values() if config is None else ():
        _say(why)
    folder = state or state_folder(listen)
    setting = data.Setting(
        listen,
        folder,
        None if no_control else Listen("127.0.0.1", _operator_port(listen, operator_port)),
        _say,
        lambda bound, operator: _welcome(read, listen._replace(port=bound), operator, folder),
        _bug,
        None if config is None else lambda: _again(config, read.connections, listen),
        frozenset(key.get_secret_value() for one in read.targets.values() for key in one.keys.values()),
    )
    left = _serve(read, setting)
    if left:
        _say(f"stopped with {left} calls still open")
    raise typer.Exit(Exit.FAILED if left else Exit.OK)


def _that_fits(read: Config) -> Config:
    """The configuration with as many connections as the system allows. Ends the command if it asks for more."""
    try:
        fitting = descriptors.connections(read.connections, len(read.targets), descriptors.raise_limit())
    except BadInput as bad:
        raise _refused(str(bad)) from None
    return read.model_copy(update={"connections": fitting})


def _refused(why: str) -> typer.Exit:
    _say(why)
    return typer.Exit(Exit.USAGE)


def _serve(read: Config, setting: data.Setting) -> int:
    """Serve until stopped; how many calls had to be given up. Ends the command if it cannot begin."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            return runner.run(data.serve(read, setting))
        except data.Stop as stop:
            _say(stop.sentence)
            raise typer.Exit(stop.code) from None


def _again(file: Path, connections: int | None, listen: Listen) -> Config:
    """The file as it is now; how many connections fit does not change while we run. Errors: `FileError`, also where it names the gate itself."""
    fresh = load(file, os.environ)
    for name, why in itself(fresh, listen).items():
        raise FileError(str(file), [Problem(0, f"targets.{name}", why)])
    return fresh if fresh.connections else fresh.model_copy(update={"connections": connections})


def _operator_port(listen: Listen, told: int | None) -> int:
    """Beside the data port; a free one beside a free one."""
    if told is not None:
        return told
    return listen.port + 1 if listen.port else 0


def _welcome(config: Config, listen: Listen, operator: str, state: Path) -> None:
    address = data.shown(listen)
    _say(f"swarmgate {__version__} listens on {configured.scheme(config)}://{address}")
    for name, target in config.targets.items():
        url = target.base_url
        each = "account" if target.accounts else "key"
        limits = [*map(str, target.limits), *(f"{quota} of each {each}" for quota in target.key_limits)]
        keys = ", ".join(target.keys)
        _say(
            f"  {name}: {url.scheme}://{url.host}:{url.port}{url.path}, keys: {keys}; {', '.join(limits) or 'no limits'}"
        )
    for host, pin in config.resolve.items():
        _say(f"  {host} is dialled at {pin.address}:{pin.port}, whatever DNS says")
    for one in warned(Asked(config, os.environ, listen)):
        if one.kind not in _FOR_CHECK:
            _say(f"  {one.sentence}")
    if operator:
        _say(f"operators: http://{operator}, token in {state / token.FILE}; ledger: {state}")
    print("\n".join(configured.exports(config, address)), flush=True)


def _bug(call: Call, error: Exception) -> None:
    _say(f"bug in call {call.id}: {''.join(traceback.format_exception(error))}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
