"""
What is written down about each call of a swarm, and read back for the report: one JSON array a line.

Instants are the machine's monotonic clock in ms, as in the witness's file, so that both can be laid side by side.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from swarmgate.lab.errors import LabError


class Fate(StrEnum):
    """How a call ended for its agent."""

    ANSWERED = "answered"
    GAVE_UP = "gave_up"  # its repeats or its time were used up
    FAILED = "failed"  # an error that no repeat helps
    OPEN = "open"  # the run was over before it


class CallRow(NamedTuple):
    """
    One call: wanted at `wanted_ms`, over at `end_ms`, after so many sends and deferrals.

    `output_tokens` are those that came; none of a call without an answer.

    `refused` counts the 429s, 403s and 503s of targets that the agent itself saw; `first_ms` is the first byte of the
    answer, 0 if there was none; `key` and `queue_ms` are what a gate said of itself; `status` and `why` are of the last answer;
    `heard` and what follows are tokens of a stream that is a chain (lab/chain.py).
    """

    call: str
    kind: str
    priority: str
    target: str
    wanted_ms: int
    first_ms: int
    end_ms: int
    fate: str
    prompt_tokens: int
    output_tokens: int
    wanted_output: int
    sends: int
    deferrals: int
    refused: int
    key: str
    queue_ms: int
    status: int
    why: str
    heard: int = 0
    lost: int = 0
    doubled: int = 0
    moved: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


def lines_of(rows: Iterable[CallRow]) -> bytes:
    """Rows as they stand in a file."""
    return b"".join(_encode(row) + b"\n" for row in rows)


def read_calls(path: Path) -> list[CallRow]:
    """The rows of a file. Errors: `LabError` names the line, OSError."""
    return calls_of(path.read_bytes().splitlines(), path)


def calls_of(lines: Iterable[bytes], path: Path) -> list[CallRow]:
    """The rows in lines of a file. Errors: `LabError` names the line."""
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(CallRow(*_decode(line)))
        except (msgspec.DecodeError, TypeError):
            raise LabError(f"line {number}", f"{path} holds no calls of a swarm") from None
    return rows
