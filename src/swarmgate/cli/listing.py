"""
Tables for people: nothing is cut off, no name is broken in two, however narrow the terminal (names are typed again), and no
number is parted from its unit where a column holds nothing else.

Columns give way between words. Where the longest words do not fit beside each other, each row stands as a block of lines
instead, a column's name before each value.
"""

import re
from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_BETWEEN = 2  # columns of the terminal between two of ours
_BREAK = re.compile(r"\s+(?!(?:%|USD|ms|s)(?:\s|$))")  # between words; a number keeps its unit


class Listing:
    """Rows under a head; print it with rich."""

    def __init__(self, *head: str, title: str | None = None) -> None:
        self._head = head
        self._title = title
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: Text | str) -> None:
        """One more row, a cell per column."""
        self._rows.append(tuple(Text(one) if isinstance(one, str) else one for one in cells))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """As a table if it fits, else row by row."""
        room = options.max_width - _BETWEEN * (len(self._head) - 1)
        columns = [(name, *(row[at].plain for row in self._rows)) for at, name in enumerate(self._head)]
        widths = _widths([max(map(cell_len, one)) for one in columns], [_longest_word(one) for one in columns], room)
        if self._title:
            yield Text(f"\n{self._title}", "italic")
        if widths is not None:
            yield self._table(widths)
            return
        for row in self._rows:
            yield Padding(self._block(row), (1, 0, 0, 0))

    def _table(self, widths: list[int]) -> Table:
        head = (Column(name, width=width) for name, width in zip(self._head, widths, strict=True))
        table = Table(*head, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
        for row in self._rows:
            table.add_row(*row)
        return table

    def _block(self, row: tuple[Text, ...]) -> Table:
        block = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, _BETWEEN, 0, 0))
        for name, value in zip(self._head, row, strict=True):
            block.add_row(Text(name, "bold"), value)
        return block


def _longest_word(texts: tuple[str, ...]) -> int:
    return max((cell_len(word) for text in texts for word in _BREAK.split(text)), default=0)


def _widths(natural: list[int], least: list[int], room: int) -> list[int] | None:
    """A width per column: as wide as its texts if there is room, never below its longest word; None if that is too much."""
    if sum(natural) <= room:
        return natural
    spare, wanted = room - sum(least), sum(natural) - sum(least)
    if spare < 0:
        return None
    return [low + (high - low) * spare // wanted for high, low in zip(natural, least, strict=True)]
