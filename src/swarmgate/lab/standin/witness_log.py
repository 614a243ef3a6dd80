"""
The witness on disk: every arrival and every end of an answer, appended and never changed.

Written by the stand-ins, read by reports: one JSON array a line. The instants are the machine's monotonic clock in ms, so
that what another process wrote on the same machine can be laid beside it. Nothing of the gate is believed here.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from swarmgate.lab.errors import LabError
from swarmgate.lab.witness import Arrival, Departure, Witness

MOST_HELD_ROWS = 500
_decode = msgspec.json.Decoder(list[Any]).decode


class Seen(NamedTuple):
    """
    One arrival: where (`place`, quota `scope`), by which key, on which connection, for which call, and what was said.

    `tokens` is what it cost at arrival; `status` 200 = served.
    """

    t_ms: int
    place: str
    scope: str
    key: str
    connection: int
    call: str
    tokens: int
    status: int


class Left(NamedTuple):
    """The end of an answer that had passed: the tokens that it added."""

    t_ms: int
    place: str
    scope: str
    call: str
    tokens: int


class WitnessLog:
    """Appends rows to a file; `flush` a few times a second and at the end."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._held: list[bytes] = []
        self._encode = msgspec.json.Encoder().encode
        self.arrivals = 0
        self.refusals = 0

    def write(self, row: Seen | Left) -> None:
        """Remember one row."""
        if isinstance(row, Seen):
            self.arrivals += 1
            self.refusals += row.status != 200
        if self._file is not None:
            self._held.append(self._encode((type(row).__name__.lower(), *row)))
            if len(self._held) >= MOST_HELD_ROWS:
                self.flush()

    def flush(self) -> None:
        """Append what is held."""
        if self._held and self._file is not None:
            held, self._held = self._held, []
            os.write(self._file, b"\n".join((*held, b"")))

    def close(self) -> None:
        """The last rows, and the file's end."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_rows(path: Path) -> Iterator[Seen | Left]:
    """The rows of a file in order. Errors: `LabError` names the line, OSError."""
    with path.open("rb") as file:
        yield from rows_of(file, path)


def rows_of(lines: Iterable[bytes], path: Path) -> Iterator[Seen | Left]:
    """The rows in lines of a file. Errors: `LabError` names the line."""
    kinds: dict[str, type[Seen | Left]] = {"seen": Seen, "left": Left}
    for number, line in enumerate(lines, 1):
        try:
            name, *values = _decode(line)
            yield kinds[name](*values)
        except (msgspec.DecodeError, ValueError, KeyError, TypeError):
            raise LabError(f"line {number}", f"{path} is no witness's file") from None


def witnesses(rows: Iterator[Seen | Left]) -> dict[tuple[str, str], Witness]:
    """A witness per place and scope that can be asked (lab/witness.py)."""
    found: dict[tuple[str, str], Witness] = {}
    for row in rows:
        witness = found.setdefault((row.place, row.scope), Witness())
        if isinstance(row, Seen):
            witness.arrived(Arrival(row.t_ms, row.call, 0, row.key, row.tokens, row.status == 200))
        else:
            witness.departed(Departure(row.t_ms, row.call, 0, row.tokens))
    return found
