"""`swarmgate why`: one call's whole life on one screen."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swarmgate.cli.evidence import USUAL_PORT, Port, State, asking, plain, stop
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import folder_of
from swarmgate.cli.listing import Listing
from swarmgate.config.quota import shown, shown_unit
from swarmgate.core.reasons import SENTENCES, Reason

EXAMPLE = "Example: swarmgate why req-8f21c0a3b4-1f"
_MICRO = 1_000_000


def why(
    request_id: Annotated[str, typer.Argument(help="As x-request-id told it.", metavar="REQUEST_ID")],
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Tell one call's life: who asked, what it waited for, every attempt with its limits, and how it ended."""
    from swarmgate.control import answers  # noqa: PLC0415  SQLAlchemy must not load where `up` runs

    with asking():
        found = answers.life(folder_of(state, port), request_id)
    if found is None:
        sentence = f"no call {plain(request_id)[:80]} is in the ledger; one that runs comes with its first attempt"
        raise stop(Exit.FAILED, sentence)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    console = Console()
    console.print(_who(found["call"]))
    table = Listing("after ms", "what", "detail")
    for after_ms, what, detail in sorted(_life(found), key=lambda one: one[0]):
        table.add_row(f"{after_ms:,}", Text(plain(what)), Text(plain(detail)))
    console.print(table)


def _who(call: dict[str, Any]) -> Table:
    """Who asked, in one block."""
    table = Table(show_header=False, box=None)
    identity = [
        (name, call[name]) for name in ("agent", "task", "goal", "step", "operation", "task_type", "team", "trace")
    ]
    rows = [
        ("call", call["id"]),
        *([("caller's own id", call["client_request_id"])] if call["client_request_id"] else []),
        ("asked by", ", ".join(f"{name} {value}" for name, value in identity if value) or "unattributed"),
        ("priority", f"P{call['priority']}, {call['effect'] or 'read'}"),
        ("target", f"{call['target']} {call['model']}".strip()),
    ]
    for name, value in rows:
        table.add_row(Text(name, style="bold"), Text(plain(value)))
    return table


def _life(found: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """What happened, each with the ms since the call arrived."""
    call = found["call"]
    start_ms = call["arrived_ms"]
    yield 0, "arrived", ""
    for attempt in found["attempts"]:
        yield from _attempt(attempt, start_ms)
    for deferral in found["deferrals"]:
        blocked = [_blocker(one) for one in deferral["blocked"]]
        wait_ms = deferral["not_before_ms"] - deferral["at_ms"]
        yield (
            deferral["at_ms"] - start_ms,
            "deferred",
            f"come back in {wait_ms:,} ms; blocked by {'; '.join(blocked) or 'nothing'}",
        )
    for event in found["events"]:
        yield event["at_ms"] - start_ms, event["kind"], f"{event['target']} {event['reason']}"
    if call["ended_ms"] is not None:
        yield call["ended_ms"] - start_ms, f"ended: {call['end']}", _sentence(call["reason"])


_WAITS: Final = {
    "time": "room comes with time",
    "event": "a call that holds it must end",
    "line": "others stand before it",
    "never": "the call is larger than it holds",
}


def _blocker(one: dict[str, Any]) -> str:
    """One budget that blocked, with the limit that was in force; a pause has none."""
    if one["paused"]:
        return f"{one['budget']} (revision {one['revision']}: paused)"
    if one["amount"] is None:
        return f"{one['budget']} ({_WAITS.get(one['kind'], one['kind'])})"
    window = f" per {one['window_ms'] / 1_000:g}s" if one["window_ms"] else ""
    limit = f"{shown(one['amount'], one['unit'])} {shown_unit(one['unit'])}{window}"
    why = f"revision {one['revision']}; {_WAITS.get(one['kind'], one['kind'])}"
    return f"{one['budget']}: {shown(one['remaining'], one['unit'])} left of {limit} ({why})"


def _attempt(attempt: dict[str, Any], start_ms: int) -> Iterator[tuple[int, str, str]]:
    name = f"attempt {attempt['attempt']}"
    limits = [
        f"{row['budget']} (revision {row['revision']}{', paused' if row['paused'] else ''}; {row['author']}: {row['reason']})"
        for row in attempt["limits"]
    ]
    where = " ".join(
        filter(None, (attempt["target"], attempt["model"], attempt["key"] and f"with key {attempt['key']}"))
    )
    yield attempt["sent_ms"] - start_ms, f"{name} left", f"{where}; under {'; '.join(limits) or 'no limit'}"
    if attempt["ended_ms"] is None:
        return
    if attempt["content_ms"] is not None and attempt["content_ms"] != attempt["took_ms"]:
        yield attempt["sent_ms"] + attempt["content_ms"] - start_ms, f"{name}: first content", ""
    yield attempt["ended_ms"] - start_ms, f"{name}: {attempt['kind'] or attempt['fate']}", _ended(attempt)


def _ended(attempt: dict[str, Any]) -> str:
    """Status, use and price of an attempt."""
    told = [f"status {attempt['status']}" if attempt["status"] else "no answer"]
    if attempt["prompt_tokens"] is not None:
        about = "about " if attempt["estimated"] else ""
        told.append(f"{about}{attempt['prompt_tokens']:,} tokens in, {attempt['output_tokens'] or 0:,} out")
    money = attempt["cost_micro"]
    told.append("cost unknown" if money is None else f"cost {money / _MICRO:,.6f} USD")
    if attempt["estimated"]:
        told.append("estimated, since the target did not tell what it used")
    if not attempt["sent"]:
        told.append("no byte of it had left")
    if attempt["reason"]:
        told.append(_sentence(attempt["reason"]))
    return ", ".join(told)


def _sentence(code: str) -> str:
    """A reason's code with its sentence."""
    return f"{code}: {SENTENCES[Reason(code)]}" if code in set(Reason) else code
