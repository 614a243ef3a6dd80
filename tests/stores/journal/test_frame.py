"""Rows and lines: what is written is read, and nothing that is damaged is taken for a row."""

import typing
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.stores.journal import rows
from swarmgate.stores.journal.frame import Damaged, to_line, to_row

KINDS = typing.get_args(rows.Row)
VALUES = {
    int: st.integers(-(2**53), 2**53),
    str: st.text(max_size=20),
    bool: st.booleans(),
    tuple[str, ...]: st.lists(st.text(max_size=9), max_size=3).map(tuple),
    tuple[tuple[str, int], ...]: st.tuples(st.tuples(st.text(max_size=9), st.integers(0, 2**51))),
    tuple[rows.Blocked, ...]: st.tuples(st.builds(rows.Blocked, *[st.text(max_size=3)] * 2, *[st.integers(0, 9)] * 4)),
    dict[str, int]: st.dictionaries(st.text(max_size=5), st.integers(0, 99)),
    dict[str, dict[int, int]]: st.dictionaries(
        st.text(max_size=5), st.dictionaries(st.integers(0, 99), st.integers(0, 9))
    ),
}


def a_row(kind):
    return st.builds(kind, **{field.name: VALUES[field.type] for field in msgspec.structs.fields(kind)})


any_row = st.one_of(*map(a_row, KINDS))


@given(any_row)
def test_a_line_gives_its_row_back(row):
    line = to_line(row)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert to_row(line[:-1]) == row


@given(any_row, st.data())
def test_a_line_with_a_flipped_bit_is_no_row(row, data):
    line = bytearray(to_line(row)[:-1])
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Damaged):
        to_row(bytes(line))


@given(any_row, st.data())
def test_a_line_that_was_torn_is_no_row(row, data):
    line = to_line(row)[:-1]
    with pytest.raises(Damaged):
        to_row(line[: data.draw(st.integers(0, len(line) - 1))])


@given(any_row)
def test_plain_values_make_the_same_line(row):
    tag = type(row).__struct_config__.tag
    assert to_line((tag, *msgspec.structs.astuple(row))) == to_line(row)


def test_rows_of_other_versions():
    longer = msgspec.json.encode(["stop", 7, 8, "r", 0, "said by a later version"])
    assert to_row(_line(longer)) == rows.Stop(7, 8, "r", 0)
    assert to_row(_line(b'["what comes next",7,8]')) is None
    assert to_row(_line(b'["done",7,8,"c",1,"ok","",200,true,3,9,3,-1,0,1,2,0]')).estimated is False
    assert to_row(_line(b'["key",7,8,"t","k","dead"]')) == rows.KeyEvent(7, 8, "t", "k", "dead")


def _line(body):
    return b"%08x %b" % (crc32(body), body)
