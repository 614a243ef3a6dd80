"""
`swarmgate dead`: requests that were given up after the last retry and rung: looked at, sent again, dropped.

They stand in the gate's state folder, so looking and dropping need no running gate. A replay goes through the gate like any
call: it waits for its turn, costs what it costs, and is sent once per replay id.
"""

import json
import os
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from swarmgate.cli.evidence import cell, plain, refusal, there
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import folder_of
from swarmgate.cli.gateway import GATE_HELP, connection
from swarmgate.cli.listing import Listing
from swarmgate.cli.order import USUAL_PORT, AsJson, Port, State, whoami
from swarmgate.control.replay import ANSWER_S, NoAnswer
from swarmgate.control.replay import replay as send_again
from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import Shelf

LIST_EXAMPLE = "Example: swarmgate dead list"
SHOW_EXAMPLE = "Example: swarmgate dead show req-7daccd2632-5"
REPLAY_EXAMPLE = "Example: swarmgate dead replay req-7daccd2632-5 --gate http://127.0.0.1:8787"
DROP_EXAMPLE = "Example: swarmgate dead drop req-7daccd2632-5"
app = typer.Typer(help="Requests that were given up.", epilog=LIST_EXAMPLE, no_args_is_help=True)

_ARGUMENTS = ("id",)

LetterId = Annotated[str, typer.Argument(metavar="ID", help="The request's id, as `swarmgate dead list` shows it.")]


@app.command("list", epilog=LIST_EXAMPLE)
def list_letters(state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """Every dead letter, oldest first."""
    letters = _shelf(state, port).letters()
    if as_json:
        print(json.dumps([_plain(letter) for letter in letters], indent=2))
        return
    table = Listing("request", "given up", "target", "model", "sends", "agent", "reason", "replays")
    for one in letters:
        who = one.step.get("agent", "")
        cells = (one.id, _when(one.at_ms), one.target, one.model, one.attempts, who, one.reason, _replays(one))
        table.add_row(*map(cell, cells))
    Console().print(table if letters else "no dead letters")


@app.command(epilog=SHOW_EXAMPLE)
def show(identity: LetterId, state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """One dead letter with its request."""
    letter = _found(_shelf(state, port), identity)
    if as_json:
        print(json.dumps(_plain(letter), indent=2))
        return
    step = ", ".join(f"{name} {value}" for name, value in letter.step.items() if value)
    sends = f"{letter.attempts} sends to {letter.target} {letter.model}"
    sentence = SENTENCES[Reason(letter.reason)] if letter.reason in set(Reason) else ""
    for line in (
        f"{letter.id}, given up {_when(letter.at_ms)} after {sends}",
        f"why: {letter.reason}. {sentence}",
        f"who: {step or 'nobody said'}",
        *([f"sent again: {_replays(letter)}"] if letter.replays else ()),
        "",
        f"{letter.method} {letter.path}",
        *[f"{name}: {value}" for name, value in letter.headers],
        "",
    ):
        print(plain(line))
    body = f"(no body: {letter.without_body})" if letter.body is None else letter.body.decode("utf-8", "replace")
    print(_visible(body))


@app.command(epilog=REPLAY_EXAMPLE)
def replay(
    identity: LetterId,
    replay_id: Annotated[str, typer.Option(help="A name for this replay; each is sent once.")] = "first",
    gate: Annotated[str, typer.Option(help=GATE_HELP)] = "",
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: AsJson = False,
) -> None:
    """Send it again through the gate, once per replay id; SWARMGATE_KEY is the agent key, where one is asked for."""
    shelf = _shelf(state, port)
    letter = _found(shelf, identity)
    if letter.body is None:
        raise _stop(Exit.FAILED, f"{identity} cannot be sent again: {letter.without_body}")
    link = connection(gate or f"http://127.0.0.1:{port}", ANSWER_S)
    try:
        key = os.environ.get("SWARMGATE_KEY", "")
        told = partial(_note, state, port, f"replayed as {replay_id}", identity)
        status, answer = send_again(shelf, letter, replay_id, link, key, told)
    except BadInput as bad:
        raise _stop(Exit.USAGE, refusal(bad, _ARGUMENTS)) from None
    except NoAnswer as lost:
        raise _stop(Exit.FAILED, str(lost)) from None
    except OSError as error:
        raise _stop(
            Exit.UNREACHABLE, f"{link.host}:{link.port}: {getattr(error, 'strerror', None) or type(error).__name__}"
        ) from None
    if as_json:
        print(json.dumps({"id": identity, "replay_id": replay_id, "status": status, "answer": answer}))
    else:
        print(f"{status}\n{_visible(answer)}")
    if status >= 400:
        raise typer.Exit(Exit.FAILED)


@app.command(epilog=DROP_EXAMPLE)
def drop(identity: LetterId, state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """Forget a dead letter."""
    try:
        _shelf(state, port).drop(identity)
        _note(state, port, "dropped", identity)
    except BadInput as bad:
        raise _stop(Exit.USAGE, str(bad)) from None
    print(json.dumps({"dropped": identity}) if as_json else f"{identity} is dropped")


def _shelf(state: Path | None, port: int) -> Shelf:
    return Shelf(_folder(state, port))


def _note(state: Path | None, port: int, what: str, identity: str) -> None:
    Audit(_folder(state, port)).add(unix_ms(), whoami(), f"dead letter {what}", identity, old={}, new={})


def _folder(state: Path | None, port: int) -> Path:
    return there(folder_of(state, port))


def _replays(letter: Letter) -> str:
    return ", ".join(f"{name}: {outcome}" for name, outcome in letter.replays.items())


def _found(shelf: Shelf, identity: str) -> Letter:
    try:
        return shelf.letter(identity)
    except BadInput as bad:
        raise _stop(Exit.USAGE, str(bad)) from None


def _plain(letter: Letter) -> dict[str, Any]:
    body = None if letter.body is None else letter.body.decode("utf-8", "replace")
    return {**msgspec.structs.asdict(letter), "body": body}


def _when(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _visible(text: str) -> str:
    """Without what moves a terminal's cursor (reliability AZ-12)."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "?" for sign in text)


def _stop(code: Exit, text: str) -> typer.Exit:
    print(text, file=sys.stderr)
    return typer.Exit(code)
