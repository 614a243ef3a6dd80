"""
The columns by which published traces are known, and how a row of each becomes calls.

A format is a row of `FORMATS`: its name, the columns without which it is another one, and a reader. The first whose columns
are all there is taken; so a user's own file needs no flag. Sources of the columns: the traces' own repositories.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from swarmgate.lab.traces.rows import Row, TraceCall

CHARS_PER_TOKEN = 4


class Format(NamedTuple):
    """One kind of trace file; `read` gets all rows in the file's order."""

    name: str
    columns: tuple[str, ...]
    read: Callable[[Iterable[Row]], Iterator[TraceCall]]


def _azure(rows: Iterable[Row]) -> Iterator[TraceCall]:
    for row in rows:
        yield TraceCall(row.instant_ms("TIMESTAMP"), row.integer("ContextTokens"), row.integer("GeneratedTokens"))


def _mooncake(rows: Iterable[Row]) -> Iterator[TraceCall]:
    for row in rows:
        yield TraceCall(row.integer("timestamp"), row.integer("input_length"), row.integer("output_length"))


def _burstgpt(rows: Iterable[Row]) -> Iterator[TraceCall]:
    """A call that failed has no response tokens; it was wanted all the same."""
    for row in rows:
        yield TraceCall(row.amount("Timestamp", 1_000), row.integer("Request tokens"), row.integer("Response tokens"))


def _chatdev(rows: Iterable[Row]) -> Iterator[TraceCall]:
    for row in rows:
        began_ms = row.amount("t_start_s", 1_000)
        if row.amount("t_end_s", 1_000) < began_ms:
            raise row.bad("t_end_s", "lies before t_start_s")
        prompt, output = row.integer("prompt_tokens"), row.integer("completion_tokens")
        yield TraceCall(began_ms, prompt, output, row.text("session"))


def _deerflow(rows: Iterable[Row]) -> Iterator[TraceCall]:
    """Steps of a model that tell when they began; the others are tools and people."""
    for row in rows:
        if row.text("role") == "ai" and row.has("t_ms"):
            prompt = row.integer("context_chars_before") // CHARS_PER_TOKEN
            output = row.integer("out_chars") // CHARS_PER_TOKEN
            yield TraceCall(row.integer("t_ms"), prompt, output, row.text("session"))


def _copilot(rows: Iterable[Row]) -> Iterator[TraceCall]:
    """One row is one session: the calls of its turns."""
    for row in rows:
        session = row.text("session_id")
        for turn in row.children("turns"):
            for call in turn.children("llm_calls"):
                tokens = call.child("tokens")
                prompt, output = tokens.integer("prompt"), tokens.integer("completion")
                yield TraceCall(call.instant_ms("timestamp"), prompt, output, session)


def _plain(rows: Iterable[Row]) -> Iterator[TraceCall]:
    in_sessions = None
    for row in rows:
        has_session = row.has("session")
        in_sessions = has_session if in_sessions is None else in_sessions
        if has_session != in_sessions:
            here, elsewhere = ("named", "empty") if has_session else ("empty", "named")
            raise row.bad("session", f"is {here} here and {elsewhere} before; name all sessions or none")
        yield TraceCall(
            row.integer("t_ms"),
            row.integer("prompt_tokens"),
            row.integer("output_tokens"),
            row.text("session") if has_session else "",
            tuple(row.text("hosts").split()) if row.has("hosts") else (),
        )


FORMATS = (
    Format("azure", ("TIMESTAMP", "ContextTokens", "GeneratedTokens"), _azure),
    Format("mooncake", ("timestamp", "input_length", "output_length"), _mooncake),
    Format("burstgpt", ("Timestamp", "Request tokens", "Response tokens"), _burstgpt),
    Format("chatdev", ("session", "t_start_s", "t_end_s", "prompt_tokens", "completion_tokens"), _chatdev),
    Format("deer-flow", ("session", "role", "context_chars_before", "out_chars"), _deerflow),
    Format("copilot", ("session_id", "turns"), _copilot),
    Format("plain", ("t_ms", "prompt_tokens", "output_tokens"), _plain),
)
