"""`swarmgate up`: the data plane in the foreground, until SIGTERM or Ctrl-C drains it."""

import asyncio
import gc
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from swarmgate import __version__
from swarmgate.cli import configured
from swarmgate.cli.exits import Exit
from swarmgate.cli.loops import new_event_loop
from swarmgate.config import Config, Listen
from swarmgate.core.record import Call
from swarmgate.engine.clock import LoopClock
from swarmgate.stores.memory import snapshot
from swarmgate.wiring import gate, plan

EXAMPLE = "Example: OPENAI_API_KEY=... swarmgate up --port 8787"


def up(
    config: Annotated[
        Path | None, typer.Option(help="TOML file; without one OPENAI_API_KEY and ANTHROPIC_API_KEY are used.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Data port; 0 takes a free one.")] = None,
    state: Annotated[Path | None, typer.Option(help="Folder that remembers budgets over a clean stop.")] = None,
) -> None:
    """Relay model calls through keys and budgets until stopped."""
    read = configured.read(config)
    listen = read.listen if port is None else Listen(read.listen.host, port)
    for name, target in read.targets.items():
        if (target.base_url.host, target.base_url.port) == listen:
            raise _stop(
                Exit.USAGE, f"{name}: base_url is this gate itself; where `up` runs it is the URL of the provider"
            )
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        raise typer.Exit(runner.run(_serve(read, listen, state or _state_folder(listen))))


def _state_folder(listen: Listen) -> Path:
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    return home / "swarmgate" / f"{listen.host}-{listen.port}".replace(":", "_")


async def _serve(config: Config, listen: Listen, state: Path) -> Exit:
    loop = asyncio.get_running_loop()
    try:
        kept = snapshot.begin(state, LoopClock(loop).now_ms(), plan(config).budgets)
    except snapshot.FolderInUse as error:
        _say(str(error))
        return Exit.UNREACHABLE
    except (FileExistsError, NotADirectoryError):
        _say(f"--state {state}: a file stands there or above it; name a folder")
        return Exit.USAGE
    except OSError as error:
        _say(f"{state} cannot keep the budgets: {error.strerror}")
        return Exit.USAGE
    try:
        return await _run(loop, config, listen, kept)
    finally:
        snapshot.finish(state, kept)


async def _run(loop: asyncio.AbstractEventLoop, config: Config, listen: Listen, kept: snapshot.Start) -> Exit:
    _say(kept.sentence)
    running = gate(loop, config, _bug, kept.book)
    stopped = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stopped.set)
    try:
        port = await running.start(*listen)
    except OSError as error:
        _say(f"{listen.host}:{listen.port} cannot be listened on: {error.strerror}")
        return Exit.UNREACHABLE
    _welcome(config, f"{listen.host}:{port}")
    gc.collect()
    gc.freeze()  # what lives as long as the process need not be looked through again
    await stopped.wait()
    _say("stopping: no new calls; open ones may end")
    left = await running.stop()
    if left:
        _say(f"stopped with {left} calls still open")
    return Exit.FAILED if left else Exit.OK


def _welcome(config: Config, address: str) -> None:
    _say(f"swarmgate {__version__} listens on http://{address}")
    for name, target in config.targets.items():
        url = target.base_url
        limits = ", ".join(str(quota) for quota in (*target.limits, *target.key_limits)) or "no limits"
        _say(f"  {name}: {url.scheme}://{url.host}:{url.port}{url.path}, keys: {', '.join(target.keys)}; {limits}")
    print("\n".join(configured.exports(config, address)), flush=True)


def _bug(call: Call, error: Exception) -> None:
    _say(f"bug in call {call.id}: {''.join(traceback.format_exception(error))}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _stop(code: Exit, text: str) -> typer.Exit:
    _say(text)
    return typer.Exit(code)
