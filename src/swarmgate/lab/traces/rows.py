"""
One row of a trace file and one call of a trace; every complaint names the file, the row and the column.

A row is the text or JSON that stands there; a call is what the lab needs of it. Values are read here and nowhere else, so
that a broken file is told in the same words whatever its format is.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

from swarmgate.lab.errors import LabError

MOST = 2**40  # ms or tokens; more is a mistake in the file
LINE, WHOLE = "line", "file"  # instead of a column, where the whole row or the whole file is wrong


class TraceError(LabError):
    """A file that is no trace: `source`, `row` (from 1, the header counts), `column` and what would be right."""

    def __init__(self, source: str, row: int, column: str, reason: str) -> None:
        self.source, self.row, self.column = source, row, column
        super().__init__(column, reason)
        places = {LINE: f"{source}, row {row}: {reason}", WHOLE: f"{source}: {reason}"}
        self.args = (places.get(column, f"{source}, row {row}, column {column}: {reason}"),)


class TraceCall(NamedTuple):
    """
    One model call as it was recorded: sent at `t_ms` from the trace's beginning.

    In a `session` (closed loop) it waited for the call before it; without one (open loop) it came whenever it came.
    `hosts` were fetched on account of its answer.
    """

    t_ms: int
    prompt_tokens: int
    output_tokens: int
    session: str = ""
    hosts: tuple[str, ...] = ()


class Row:
    """One row with its place; each reader names a column and raises `TraceError` about it."""

    __slots__ = ("_source", "_values", "number")

    def __init__(self, source: str, number: int, values: Mapping[str, Any]) -> None:
        self._source = source
        self._values = values
        self.number = number

    def has(self, column: str) -> bool:
        """Whether anything stands in this column."""
        value = self._values.get(column)
        return value is not None and value != ""

    def names(self, columns: Iterable[str]) -> bool:
        """Whether the row has all these columns, whatever stands in them."""
        return all(column in self._values for column in columns)

    def bad(self, column: str, reason: str) -> TraceError:
        """What to raise about a column of this row."""
        return TraceError(self._source, self.number, column, reason)

    def text(self, column: str) -> str:
        """What stands there, not empty."""
        if not self.has(column):
            raise self.bad(column, "is empty")
        return str(self._values[column])

    def integer(self, column: str) -> int:
        """A whole number from 0."""
        return self.amount(column, 1)

    def amount(self, column: str, scale: int) -> int:
        """A number from 0, times `scale`, rounded to a whole one; seconds become ms with a scale of 1,000."""
        value = self._values.get(column)
        try:
            number = None if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # what else is caught
        except (TypeError, ValueError):
            number = None
        if number is None:
            raise self.bad(column, f"{value!r} is no number")
        if not isfinite(number) or not 0 <= number * scale <= MOST:
            raise self.bad(column, f"{value!r} lies outside 0 to {MOST // scale}")
        if scale == 1 and number != int(number):
            raise self.bad(column, f"{value!r} is no whole number")
        return round(number * scale)

    def instant_ms(self, column: str) -> int:
        """A date and time (ISO 8601; without a zone it is UTC) as ms since 1970."""
        text = self.text(column)
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            raise self.bad(column, f"{text!r} is no date and time") from None
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1_000)

    def children(self, column: str) -> list["Row"]:
        """The objects of a list that stands there; what is wrong in them is told under this row."""
        value = self._values.get(column)
        if not isinstance(value, list) or not all(isinstance(child, dict) for child in value):
            raise self.bad(column, "is no list of objects")
        return [Row(self._source, self.number, child) for child in value]

    def child(self, column: str) -> "Row":
        """The object that stands there."""
        value = self._values.get(column)
        if not isinstance(value, dict):
            raise self.bad(column, "is no object")
        return Row(self._source, self.number, value)
