"""Counters over a crash: what was used is never granted again, and what is over is forgotten."""

import errno
import shutil
from pathlib import Path
from random import Random

import pytest
from disk import Desk, Disk, everything
from hypothesis import given, settings
from hypothesis import strategies as st

from life import route, rung
from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, Take, Usage
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.passage import touch
from swarmgate.lab.sim.disk import SimDisk
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.stores.journal import counters, rows
from swarmgate.stores.journal.said import AHEAD_PARTS
from swarmgate.stores.journal.segments import Retention, listed

DAY_MS = 86_400_000
DAY = Limits(BudgetKind.COUNTER, burst=1_000, window_ms=DAY_MS, slices=24)
SHORT = Limits(BudgetKind.COUNTER, burst=1_000, window_ms=4_000, slices=4)
RATE = Limits(BudgetKind.LEVEL, burst=5, quota=5, window_ms=1_000)
RUNGS = (rung("t", route("k1", fixed=(("day", 1, 0), ("rate", 1, 0)), metered=("tokens", "short"), whole=())),)


class Life:
    """A desk whose calls really take from a book."""

    def __init__(self, folder, start_ms, **desk):
        self.desk = Desk(folder, start_ms=start_ms, **desk)
        self.book = self.desk.journal.book = Book(start_ms)
        for name, limits in (("day", DAY), ("tokens", DAY), ("short", SHORT), ("rate", RATE)):
            kernel.define(self.book, name, limits)
        self.open = []
        self.waiting, self.heard = [], []  # who wants to hear of the next sync, and of the present one

    def syncs(self):
        """The disk has what is written; who asked hears of it later."""
        self.desk.journal.writer.sync()
        self.heard += self.waiting
        self.waiting.clear()

    def hears(self):
        for then in self.heard:
            then()
        self.heard.clear()

    @property
    def now_ms(self):
        return self.desk.loop.ms

    def call(self, number, prompt, reserve):
        call = self.desk.call(f"c{number}", RUNGS)
        call.prompt, call.reserve = prompt, reserve
        demands = (
            *RUNGS[0].routes["k1"].demands(prompt, reserve)[:1],
            ("tokens", prompt, reserve),
            ("short", prompt, reserve),
        )
        kernel.take(self.book, Take(call.id, call.id, 1, 0, (demands,), 60_000), self.now_ms)
        self.desk.leaves(call)
        self.open.append(call)

    def ends(self, used):
        call = self.open.pop(0)
        usage = tuple(Usage(name, call.reserve, used) for name in ("tokens", "short"))
        kernel.settle(self.book, call.id, usage, self.now_ms, last=True)
        self.desk.answered(call)

    def flows(self, used):
        """Of a long answer so much is used already, and told to the book."""
        call = self.open[0]
        usage = tuple(Usage(name, call.reserve, used) for name in ("tokens", "short"))
        kernel.settle(self.book, call.id, usage, self.now_ms, last=False)
        self.desk.loop.second()

    def units(self):
        return {name: self.book.cells[name].level + self.book.cells[name].pending for name in ("day", "tokens")}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("end"), st.integers(0, 30)),  # more than was reserved, too
        st.tuples(st.just("flows"), st.integers(0, 30)),
        st.just(("second",)),
        st.just(("syncs",)),
        st.just(("hears",)),
    ),
    max_size=40,
)


def lived(life, told):
    """What happens to a gate; how much of it was reserved."""
    reserved = 0
    for number, step in enumerate(told):
        if step[0] == "call":
            life.call(number, *step[1:])
            reserved += step[2]
        elif step[0] == "end" and life.open:
            life.ends(step[1])
        elif step[0] == "flows" and life.open:
            life.flows(step[1])
        elif step[0] == "second":
            life.desk.loop.second()
        elif step[0] == "syncs":
            life.syncs()
        elif step[0] == "hears":
            life.hears()
    return reserved


@given(steps)
@settings(max_examples=40, deadline=None)
def test_no_unit_is_granted_again_and_none_is_made_up(tmp_path_factory, told):
    folder = tmp_path_factory.mktemp("crash")
    life = Life(folder, 1_600_000_000_000)
    reserved = lived(life, told)
    units = life.units()
    touch(life.book.cells["short"], life.now_ms + 5)  # what is over in it is not used any more
    short = life.book.cells["short"].level  # what a call that was cut off had reserved stands at its beginning
    book = Book(life.now_ms + 5)
    counters.restore(folder, book, {"day": DAY, "tokens": DAY, "short": SHORT, "rate": RATE}.get, life.now_ms + 5)
    assert short <= (book.cells["short"].level if "short" in book.cells else 0)
    found = {name: book.cells[name].level if name in book.cells else 0 for name in units}
    assert found["day"] == units["day"]
    assert units["tokens"] <= found["tokens"] <= units["tokens"] + reserved
    assert "rate" not in book.cells


@given(steps, st.integers(0, 2**32), st.booleans())
@settings(max_examples=80, deadline=None)
def test_nor_is_any_after_a_loss_of_power(told, seed, beside):
    """Whatever part of the rows since the last sync is gone; a fiftieth or two may be held too much."""
    time = VirtualTime()
    disk = SimDisk("gate-1", time, Weather((), time, Random(seed)), Random(seed))
    life = Life(Path("j"), 1_600_000_000_000, keep=Retention(segment_bytes=2_000, age_ms=2**60), disk=disk)
    if beside:
        life.desk.journal.soon = life.waiting.append
    reserved = lived(life, told)
    units = life.units()
    disk.lose_power()
    book = Book(life.now_ms + 5)
    counters.restore(Path("j"), book, {"day": DAY, "tokens": DAY, "rate": RATE}.get, life.now_ms + 5, disk)
    found = {name: book.cells[name].level if name in book.cells else 0 for name in units}
    ahead = 2 * DAY.burst // AHEAD_PARTS
    assert units["day"] <= found["day"] <= units["day"] + ahead
    assert units["tokens"] <= found["tokens"] <= units["tokens"] + reserved + ahead


@given(steps, st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_lg_08_nor_is_any_where_lines_are_damaged(tmp_path_factory, told, flips, is_counters):
    """Bits flip anywhere in a journal, or in the rows of counters alone; what a line hides is no more than a part."""
    folder = tmp_path_factory.mktemp("flipped")
    life = Life(folder, 1_600_000_000_000, keep=Retention(segment_bytes=200_000))
    told = [(kind, *(min(units, 9) for units in more)) for kind, *more in told]
    lived(life, [("second",), ("call", 1, 1), *told, ("call", 1, 1), ("second",)])
    units = life.units()
    (segment,) = listed(folder)
    data = bytearray(segment.path.read_bytes().rstrip(b"\0"))
    places = [at for at in range(len(data)) if data[at] != 10]
    if is_counters:
        lines = [
            line for line in bytes(data).splitlines(keepends=True) if b'"Counters"' in line or b'"counters"' in line
        ]
        places = [data.index(line) + at for line in lines[1:] for at in range(len(line) - 1)] or places
    for where, bits in flips:
        data[places[int(where * len(places))]] ^= bits
    segment.path.write_bytes(data)
    book = Book(life.now_ms + 5)
    limits = {"day": DAY, "tokens": DAY}
    restored = counters.restore(folder, book, limits.get, life.now_ms + 5, named=limits)
    found = {name: book.cells[name].level if name in book.cells else 0 for name in units}
    assert restored.damaged <= len(flips) * 2
    assert restored.damaged or found["day"] == units["day"]
    assert found["day"] >= units["day"]
    assert found["tokens"] >= units["tokens"]


def test_what_was_used_beyond_is_told_with_the_end_alone(tmp_path):
    """A row of all that a counter holds, for each such call, took more time than everything else of a journal."""
    life = Life(tmp_path, 1_600_000_000_000)
    life.desk.loop.second()
    for number in range(20):
        life.call(number, 1, 2)
        life.ends(9)
        life.desk.loop.second()
    written, _ = everything(tmp_path)
    told = [row for row in written if isinstance(row, rows.Done)]
    assert [row.charges for row in told] == [(("tokens", 7), ("short", 7))] * 20
    assert sum(isinstance(row, rows.Counters) for row in written) < 20


@pytest.mark.parametrize("is_removed", [False, True])
def test_op_09_what_was_used_is_known_as_soon_as_rows_are_kept_again(tmp_path, monkeypatch, is_removed):
    """Rows were lost on a full disk, or with the folder; the gate dies a second after there is room again."""
    folder = tmp_path / "journal"
    full, life = Disk(monkeypatch), Life(folder, 1_600_000_000_000, keep=Retention(segment_bytes=4_000, pending_rows=2))
    for _ in range(3):
        life.desk.loop.second()
    full.error = None if is_removed else errno.ENOSPC
    for number in range(12):
        life.call(number, 5, 0)
    if is_removed:
        shutil.rmtree(folder)
    life.desk.loop.second()
    full.error = None
    life.desk.loop.second()
    book = Book(life.now_ms)
    counters.restore(folder, book, {"day": DAY, "tokens": DAY}.get, life.now_ms)
    assert book.cells["tokens"].level == life.units()["tokens"] == 60


def test_what_was_used_yesterday_is_forgotten(tmp_path):
    life = Life(tmp_path, 1_600_000_000_000)
    life.call(1, 500, 0)
    life.desk.loop.second()
    late_ms = life.now_ms + 2 * DAY_MS
    book = Book(late_ms)
    assert counters.restore(tmp_path, book, {"tokens": DAY}.get, late_ms) == (1, 0)
    kernel.take(book, Take("x", "x", 1, 0, ((("tokens", 1, 0),),), 60_000), late_ms + 1)
    assert book.cells["tokens"].level == 1


def test_a_counter_whose_slices_changed_still_holds_what_it_held(tmp_path):
    life = Life(tmp_path, 1_600_000_000_000)
    life.call(1, 500, 0)
    life.desk.loop.second()
    calendar = Limits(BudgetKind.COUNTER, burst=1_000, window_ms=DAY_MS, anchor_ms=life.now_ms - 5_000)
    book = Book(life.now_ms)
    assert counters.restore(tmp_path, book, {"tokens": calendar, "day": RATE}.get, life.now_ms) == (1, 0)
    assert book.cells["tokens"].level == 500


def test_the_last_row_may_lie_in_an_older_segment(tmp_path):
    first = Life(tmp_path, 1_600_000_000_000)
    first.call(1, 7, 0)
    first.desk.loop.second()
    second = Desk(tmp_path, start_ms=first.now_ms + 1_000)
    assert not second.journal.book.counters
    third = Life(tmp_path, first.now_ms + 2_000)
    counters.restore(tmp_path, third.book, {"day": DAY, "tokens": DAY}.get, third.now_ms)
    third.call(2, 5, 1)
    assert sum(counters.last(tmp_path)["tokens"].values()) == 13


def test_lg_14_where_nothing_tells_what_was_used_counters_are_used_up_for_their_window():
    book = Book(1_600_000_000_000)
    assert counters.use_up(book, {"day": DAY, "rate": RATE}, book.birth_ms) == 1
    assert "rate" not in book.cells
    asked = Take("x", "x", 1, 0, ((("day", 1, 0),),), 60_000)
    assert isinstance(kernel.take(book, asked, book.birth_ms), Denied)
    assert isinstance(kernel.take(book, asked, book.birth_ms + DAY_MS + 3_600_000), Granted)


def test_nothing_was_counted(tmp_path):
    Desk(tmp_path)
    assert counters.restore(tmp_path, Book(1), lambda _name: DAY, 1) == (0, 0)
    assert counters.last(tmp_path / "none") == {}


def test_lg_14_a_book_that_knows_more_or_less_than_the_journal_gets_the_most_of_each_slice(tmp_path):
    life = Life(tmp_path, 1_600_000_000_000)
    life.call(1, 500, 0)
    life.desk.loop.second()
    for known, most in ((20, 500), (700, 700)):
        book = Book(life.now_ms)
        kernel.define(book, "tokens", DAY)
        kernel.take(book, Take("x", "x", 1, 0, ((("tokens", known, 0),),), 60_000), life.now_ms)
        counters.restore(tmp_path, book, {"tokens": DAY}.get, life.now_ms)
        assert book.cells["tokens"].level == most


@given(
    st.lists(st.sampled_from(["call"] * 6 + ["syncs", "hears", "hears", "second"]), max_size=60), st.integers(0, 2**32)
)
@settings(max_examples=100, deadline=None)
def test_lg_09_nothing_is_used_ahead_of_what_the_disk_knows(told, seed):
    """Dense use: what was asked for beside the loop counts only once it is on the disk, and no later row said otherwise."""
    time = VirtualTime()
    disk = SimDisk("gate-1", time, Weather((), time, Random(seed)), Random(seed))
    life = Life(Path("j"), 1_600_000_000_000, keep=Retention(segment_bytes=30_000, age_ms=2**60), disk=disk)
    life.desk.journal.soon = life.waiting.append
    lived(life, [("call", 9, 0) if step == "call" else (step,) for step in told])
    used = life.units()["tokens"]
    disk.lose_power()
    book = Book(life.now_ms + 5)
    counters.restore(Path("j"), book, {"tokens": DAY}.get, life.now_ms + 5, disk)
    found = book.cells["tokens"].level if "tokens" in book.cells else 0
    assert used <= found <= used + 2 * DAY.burst // AHEAD_PARTS


def test_lg_05_a_counter_asks_in_time_and_the_loop_never_waits_for_the_disk(tmp_path, monkeypatch):
    life, synced = Life(tmp_path, 1_600_000_000_000), []
    life.desk.journal.soon = life.waiting.append
    life.call(0, 1, 0)  # the first one waits: the disk knows nothing of it yet
    monkeypatch.setattr(type(life.desk.journal.writer), "sync", lambda _writer: synced.append(1))
    for number in range(1, 200):
        life.call(number, 3, 0)
        life.heard, life.waiting[:] = life.waiting[:], []
        life.hears()
    assert synced == []
