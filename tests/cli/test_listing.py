"""Tables on any terminal: whatever its width, each word stands whole on a line that fits."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from swarmgate.cli.listing import Listing

WORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1, max_size=30)
CELLS = st.lists(WORDS, max_size=4).map(" ".join)
SHAPES = st.integers(1, 8).flatmap(
    lambda wide: st.tuples(
        st.lists(WORDS, min_size=wide, max_size=wide),
        st.lists(st.lists(CELLS, min_size=wide, max_size=wide), max_size=3),
    )
)


def shown(head, rows, width, title=None):
    listing = Listing(*head, title=title)
    for row in rows:
        listing.add_row(*row)
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(listing)
    return console.file.getvalue()


@given(SHAPES, st.integers(62, 200))
def test_no_word_is_cut_or_broken(shape, width):
    head, rows = shape
    text = shown(head, rows, width)
    assert max(map(len, text.splitlines()), default=0) <= width
    words = text.split()
    for row in rows:
        for cell in row:
            assert set(cell.split()) <= set(words)


@pytest.mark.parametrize(("width", "is_table"), [(80, True), (50, True), (36, False)])
def test_what_is_too_wide_stands_as_blocks(width, is_table):
    text = shown(("name", "who", "what"), [("req-1234567-abcdef", "literature-agent", "it was sent")], width, "A title")
    assert ("───" in text) is is_table
    assert "A title" in text
    assert {"req-1234567-abcdef", "literature-agent"} <= set(text.split())


def test_columns_give_way_between_words():
    lines = shown(("a", "b"), [("short", "one two three four five six")], 20).splitlines()
    assert [line.split()[0] for line in lines if line.startswith("short")] == ["short"]
    assert max(map(len, lines)) <= 20
