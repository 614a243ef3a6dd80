"""A journal that is read while it is written, after a crash, and with damage in it."""

import pytest
from disk import Desk, everything
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.stores.journal import reader, rows
from swarmgate.stores.journal.frame import to_line
from swarmgate.stores.journal.reader import Position, read
from swarmgate.stores.journal.segments import Listed, begin, listed

STOPS = [rows.Stop(number, number, "run", 0) for number in range(40)]
LINES = [to_line(row) for row in STOPS]


def write(folder, number, data):
    path = folder / f"journal-{number:016d}.log"
    with path.open("ab") as file:
        file.write(data)
    return path


@given(st.lists(st.integers(0, len(b"".join(LINES))), max_size=6))
@settings(max_examples=50, deadline=None)
def test_rows_come_once_and_in_order_however_the_file_grows(tmp_path_factory, cuts):
    folder, data = tmp_path_factory.mktemp("grows"), b"".join(LINES)
    at, got, written = Position(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        write(folder, 5, data[written:cut])
        written = cut
        batch = read(folder, at)
        assert not batch.torn + batch.damaged
        got += batch.rows
        at = batch.position
    assert got == STOPS
    assert read(folder, at).is_end


def test_a_torn_end_is_passed_once_a_newer_file_is_there(tmp_path):
    write(tmp_path, 5, LINES[0] + LINES[1][:-9])
    first = read(tmp_path, Position())
    assert (first.rows, first.torn) == (STOPS[:1], 0)
    assert read(tmp_path, first.position).is_end
    write(tmp_path, 6, LINES[2])
    second = read(tmp_path, first.position)
    assert (second.rows, second.torn) == ([], 1)
    assert read(tmp_path, second.position).rows == [STOPS[2]]


def test_damage_costs_the_lines_that_it_hit(tmp_path):
    data = bytearray(b"".join(LINES[:10]))
    data[len(LINES[0]) + 15] ^= 1
    write(tmp_path, 5, bytes(data))
    found, bad = everything(tmp_path)
    assert found == STOPS[:1] + STOPS[2:10]
    assert bad == 1


@pytest.mark.interpreted  # replaces a constant
def test_a_file_without_lines_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK_BYTES", 100)
    write(tmp_path, 5, b"x" * 350)
    write(tmp_path, 6, LINES[0])
    found, bad = everything(tmp_path)
    assert (found, bad) == (STOPS[:1], 4)


@pytest.mark.interpreted  # replaces a constant
def test_small_pieces_give_the_same(tmp_path, monkeypatch):
    write(tmp_path, 5, b"".join(LINES))
    monkeypatch.setattr(reader, "_CHUNK_BYTES", 100)
    assert everything(tmp_path) == (STOPS, 0)


def test_what_was_removed_before_it_was_read_is_told(tmp_path):
    old = write(tmp_path, 5, LINES[0])
    write(tmp_path, 7, LINES[1])
    at = read(tmp_path, Position()).position
    assert at == Position(7, 0)
    write(tmp_path, 7, LINES[2])
    at = read(tmp_path, at).position
    old.unlink()
    (tmp_path / f"journal-{7:016d}.log").unlink()
    write(tmp_path, 9, LINES[3])
    batch = read(tmp_path, at)
    assert batch.gone
    assert batch.rows == STOPS[3:4]
    assert not read(tmp_path, batch.position).gone


def test_nothing_is_there_yet(tmp_path):
    assert read(tmp_path / "none", Position()).is_end


def test_only_journals_are_read(tmp_path):
    (tmp_path / "journal-1.log").write_bytes(LINES[0])
    (tmp_path / "notes.txt").write_bytes(LINES[0])
    assert listed(tmp_path) == []
    segment = begin(tmp_path, 3, 100)
    assert listed(tmp_path) == [Listed(tmp_path / f"journal-{3_000:016d}.log", 3_000)]
    segment.close()


@given(st.integers(0, 60), st.integers(1, 40))
@settings(max_examples=50, deadline=None)
def test_what_is_on_its_way_into_the_newest_file_is_left_for_later(tmp_path_factory, at, hole):
    folder = tmp_path_factory.mktemp("hole")
    data = bytearray(b"".join(LINES[:3]))
    whole = bytes(data)
    at = at * len(data) // 61
    data[at : at + hole] = b"\0" * len(data[at : at + hole])
    path = write(folder, 5, bytes(data) + b"\0" * 50)
    batch = read(folder, Position())
    assert batch.damaged == batch.torn == 0
    path.write_bytes(whole + b"\0" * 50)
    assert batch.rows + read(folder, batch.position).rows == STOPS[:3]


def test_a_journal_of_a_running_gate(tmp_path):
    desk = Desk(tmp_path)
    at, got = Position(), []
    for number in range(5):
        desk.leaves(desk.call(f"c{number}"))
        batch = read(tmp_path, at)
        got += batch.rows
        at = batch.position
        assert isinstance(got[-1], rows.Intent)  # on file as soon as it may leave
        assert got[-1].call == f"c{number}"
