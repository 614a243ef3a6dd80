"""
Trace files from disk: CSV or JSON lines, gzipped or not, of any known format.

What the file is, is seen from its content and its columns. Calls come out in order of time, counted from the first one; of
sessions each keeps its own order. Everything is checked before anything is used.
"""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from swarmgate.lab.traces.formats import FORMATS, Format
from swarmgate.lab.traces.rows import LINE, WHOLE, Row, TraceCall, TraceError

GZIP = b"\x1f\x8b"


class Trace(NamedTuple):
    """Calls in order of time; `is_closed` if they belong to sessions whose next call waits for the last one."""

    name: str
    calls: tuple[TraceCall, ...]

    @property
    def is_closed(self) -> bool:
        """Whether it is to be played in sessions."""
        return bool(self.calls[0].session)

    @property
    def span_ms(self) -> int:
        """From the first call to the last."""
        return self.calls[-1].t_ms - self.calls[0].t_ms


def read_trace(path: Path) -> Trace:
    """The trace in a file. Errors: `TraceError` with row and column, OSError if it cannot be read."""
    with path.open("rb") as raw:
        return read_open_trace(raw, str(path))


def read_open_trace(raw: IO[bytes], name: str) -> Trace:
    """The same from an open binary file."""
    lines = _lines(raw, name)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise TraceError(name, 1, WHOLE, "is empty")
    if first.lstrip().startswith("["):
        raise TraceError(
            name, 1, WHOLE, "is a JSON array; write one object a line, without brackets and commas around it"
        )
    every = chain((first,), lines)
    rows = _json_rows(every, name) if first.lstrip().startswith("{") else _csv_rows(every, name)
    calls = list(_calls(rows, name))
    if not calls:
        raise TraceError(name, 2, WHOLE, "holds no call")
    zero_ms = min(call.t_ms for call in calls)
    calls.sort(key=lambda call: call.t_ms)
    return Trace(name, tuple(call._replace(t_ms=call.t_ms - zero_ms) for call in calls))


def _lines(raw: IO[bytes], name: str) -> Iterator[str]:
    is_packed = raw.read(2) == GZIP
    raw.seek(0)
    number = 1
    try:
        for number, line in enumerate(gzip.GzipFile(fileobj=raw) if is_packed else raw, 1):  # noqa: B007 - for the error
            yield line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(name, number, LINE, f"is neither CSV nor JSON in UTF-8: {error.reason}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(name, number, LINE, f"is the last that could be unpacked: {error}") from None


def _csv_rows(lines: Iterator[str], name: str) -> Iterator[Row]:
    reader = csv.reader(lines)
    rows = _cells(reader, name)
    header = [column.strip() for column in next(rows)]
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise TraceError(name, 1, LINE, "has no commas; cells are separated by commas")
    for cells in rows:
        if not cells:
            continue
        if len(cells) != len(header):
            column = header[min(len(cells), len(header) - 1)]
            raise TraceError(name, reader.line_num, column, f"the row has {len(cells)} cells, the header {len(header)}")
        yield Row(name, reader.line_num, dict(zip(header, cells, strict=True)))


def _cells(reader: Any, name: str) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise TraceError(name, reader.line_num, LINE, f"is no CSV: {error}") from None


def _json_rows(lines: Iterator[str], name: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values: Any = json.loads(line)
        except json.JSONDecodeError as error:
            raise TraceError(name, number, LINE, f"is not JSON: {error.msg} at character {error.pos + 1}") from None
        except RecursionError:
            raise TraceError(name, number, LINE, "is nested too deeply") from None
        if not isinstance(values, dict):
            raise TraceError(name, number, LINE, "is no JSON object")
        yield Row(name, number, values)


def _calls(rows: Iterator[Row], name: str) -> Iterator[TraceCall]:
    first = next(rows, None)
    return iter(()) if first is None else _format(first, name).read(chain((first,), rows))


def _format(row: Row, name: str) -> Format:
    for one in FORMATS:
        if row.names(one.columns):
            return one
    backwards = FORMATS[::-1]  # of equally near ones a user's own, which is the last
    nearest = min(backwards, key=lambda one: sum(not row.names((column,)) for column in one.columns) / len(one.columns))
    missing = next(column for column in nearest.columns if not row.names((column,)))
    known = "".join(f"\n  {one.name}: {', '.join(one.columns)}" for one in FORMATS)
    raise TraceError(name, 1, missing, f"is missing (nearest format: {nearest.name}). Known columns are{known}")
