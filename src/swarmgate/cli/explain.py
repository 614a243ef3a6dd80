"""
`swarmgate explain`: what the gate would make of an answer that was recorded or pasted.

What can be read stands in pasted.py.
"""

import json
import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swarmgate.cli.exits import Exit
from swarmgate.cli.explain_url import explain_url
from swarmgate.cli.gateway import GATE_HELP
from swarmgate.cli.listing import Listing
from swarmgate.cli.pasted import Recorded, read
from swarmgate.core.errors import BadInput
from swarmgate.gate.own_answer import own_answer
from swarmgate.gate.understanding import Understood, understand
from swarmgate.providers.dialect import Dialect
from swarmgate.providers.rates import Reading
from swarmgate.providers.tables import DIALECTS, GENERIC, dialect_named, dialect_of, recognised

URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
EXAMPLE = "Example: curl -si https://api.example.com/v1/models | swarmgate explain -"


def explain(  # noqa: PLR0913, PLR0917  each is an option of the command
    file: Annotated[
        str,
        typer.Argument(help="A recorded or pasted answer, - reads standard input; or a URL.", metavar="FILE|URL"),
    ],
    provider: Annotated[str, typer.Option(help="Whose answer it is, if the file does not say.")] = "",
    tokens: Annotated[int | None, typer.Option(min=0, help="Tokens of its request, if you know them.")] = None,
    config: Annotated[Path | None, typer.Option(help="Of a URL: the configuration; else only presets hold.")] = None,
    method: Annotated[str, typer.Option(help="Of a URL: how it is requested.")] = "GET",
    gate: Annotated[str, typer.Option(help=GATE_HELP)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what the gate understands of an answer: quotas, wait, verdict; or of a URL: identity, policies, what is left."""
    if URL.match(file):
        explain_url(file, method, config, gate, as_json=as_json)
        return
    try:
        named = dialect_named(provider) if provider else None
        recorded = read(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8", errors="replace"))
    except BadInput as bad:
        source = "standard input" if file == "-" else file
        raise _stop(str(bad) if bad.field == "provider" else f"{source}: {bad.reason}") from None
    except OSError as error:
        raise _stop(f"{file} cannot be read: {error.strerror}; a URL begins with https:// or http://") from None
    now_unix_s = time.time_ns() // 1_000_000_000
    understood = [_understood(one, named, now_unix_s, tokens) for one in recorded]
    if as_json:
        said = [as_object(one) for one in understood]
        print(json.dumps(said[0] if len(said) == 1 else {"steps": said}, indent=2))
        return
    console = Console()
    for number, one in enumerate(understood):
        if len(understood) > 1:
            console.rule(f"step {number}", align="left")
        _show(console, one)


def _understood(one: Recorded, named: Dialect | None, now_unix_s: int, tokens: int | None) -> Understood:
    own = own_answer(one.answer) if named is None else None
    if own is not None:
        return own
    dialect = named or _dialect(one)
    return understand(dialect, one.answer, now_unix_s, tokens, is_model=named is not None or dialect is not GENERIC)


def as_object(one: Understood) -> dict[str, Any]:
    """What `--json` prints: the quota that matters on top, all of them in `dimensions`."""
    main = _reading(one.reading or Reading(""))
    return {
        "provider": one.provider,
        "status": one.status,
        **main,
        "dimension": main["dimension"] or None,
        "wait_ms": one.wait_ms,
        "verdict": None if one.outcome is None else _words(one.outcome.verdict),
        "kind": None if one.outcome is None else _words(one.outcome.kind),
        "reason": one.reason,
        "said": one.said,
        "dimensions": [_reading(reading) for reading in _all(one)],
        "tokens": one.tokens._asdict(),
    }


def _all(one: Understood) -> tuple[Reading, ...]:
    """The quotas of the headers; where only the error's words name one, that."""
    return one.readings or ((one.reading,) if one.reading else ())


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "dimension": reading.dimension,
        "limit": reading.limit,
        "remaining": reading.remaining,
        "reset_ms": reading.reset_ms,
        "window_ms": reading.window_ms or None,
    }


def _dialect(one: Recorded) -> Dialect:
    """Whom the host, the file's own word or a header gives away."""
    known = dialect_of(one.host)
    if known is GENERIC:
        known = DIALECTS.get(one.provider, GENERIC)
    return recognised(name for name, _ in one.answer.headers) if known is GENERIC else known


def _show(console: Console, one: Understood) -> None:
    wait = (
        "not known" if one.outcome is None else "does not help" if one.wait_ms is None else f"{one.wait_ms / 1_000:g} s"
    )
    verdict = _words(one.outcome.verdict) if one.outcome is not None else "not known"
    status = "status not told" if one.status is None else f"status {one.status}"
    console.print(f"[bold]{verdict}[/bold]  ({one.provider}; {status}; wait: {wait})")
    console.print(one.reason)
    if one.said:
        console.print(f"It said: {one.said}", markup=False, highlight=False)
    table = Listing("dimension", "limit", "remaining", "reset", "window")
    for reading in _all(one):
        cells = (reading.limit, reading.remaining, _seconds(reading.reset_ms), _seconds(reading.window_ms or None))
        table.add_row(reading.dimension.replace("_", " "), *("" if cell is None else str(cell) for cell in cells))
    if _all(one):
        console.print(table)
    counted = {name: count for name, count in one.tokens._asdict().items() if count is not None}
    if counted:
        console.print("tokens: " + ", ".join(f"{name} {count}" for name, count in counted.items()))


def _seconds(ms: int | None) -> str | None:
    return None if ms is None else f"{ms / 1_000:g} s"


def _words(value: str) -> str:
    return value.replace("_", " ")


def _stop(text: str) -> typer.Exit:
    print(text, file=sys.stderr)
    return typer.Exit(Exit.USAGE)
