"""Both disks do the same; a simulated one forgets what was not synced, and then nothing is granted twice (P10, LG-09, LG-14)."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.answers import Granted
from swarmgate.core.book import Take, first_score
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.engine.disk import DISK
from swarmgate.lab.faults import Fault
from swarmgate.lab.sim.disk import PowerLost, SimDisk
from swarmgate.lab.sim.evidence import JOURNAL, STATE
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.stores.journal.segments import Retention, listed, newest
from swarmgate.stores.journal.writer import Writer
from swarmgate.stores.memory import snapshot

LIMITS = {"a": Limits(BudgetKind.LEVEL, burst=20, quota=1, window_ms=80_000_000)}
START_MS = 1_000


def sim(seed=1, *faults):
    time = VirtualTime()
    return SimDisk("gate-1", time, Weather(faults, time, Random(seed)), Random(seed))


@pytest.fixture(params=["system", "simulated"])
def place(request, tmp_path):
    return (DISK, tmp_path / "s") if request.param == "system" else (sim(), Path("s"))


def test_a_file_is_replaced_renamed_and_removed(place):
    disk, folder = place
    disk.make(folder)
    disk.write(folder / "a", b"one")
    disk.write(folder / "a", b"three")
    disk.rename(folder / "a", "b")
    assert (disk.exists(folder / "a"), disk.exists(folder / "b")) == (False, True)
    assert (disk.read(folder / "b"), disk.read(folder / "b", 1, 2), disk.read(folder / "b", 9)) == (
        b"three",
        b"hr",
        b"",
    )
    assert disk.facts(folder / "b").size == 5
    assert disk.names(folder) == ["b"]
    disk.remove(folder / "b")
    disk.remove(folder / "b")
    assert disk.names(folder) == []
    with pytest.raises(FileNotFoundError):
        disk.read(folder / "b")


def test_a_lock_is_held_by_one(place):
    disk, folder = place
    disk.make(folder)
    lock = disk.lock(folder / "l")
    assert disk.lock(folder / "l") is None
    disk.unlock(lock)
    assert disk.lock(folder / "l") is not None


def test_what_is_written_into_reserved_room_is_on_file_and_ends_where_it_is_closed(place):
    disk, folder = place
    disk.make(folder)
    file = disk.reserve(folder / "r", 4_096)
    file.write(b"abc")
    file.sync()
    assert disk.read(folder / "r") == b"abc" + bytes(4_093)
    with pytest.raises(ValueError, match=r"range|room"):
        file.write(bytes(4_094))
    assert (file.is_there(), file.written()) == (True, 3)
    file.close()
    assert disk.read(folder / "r") == b"abc"


@given(st.integers(0, 2**32))
def test_what_was_synced_survives_a_loss_of_power_and_the_rest_is_lost_or_torn(seed):
    disk = sim(seed)
    disk.write(STATE / "kept", b"k" * 2_000)
    file = disk.reserve(STATE / "r", 4_096)
    file.write(b"a" * 1_024)
    file.sync()
    file.write(b"b" * 1_024)
    disk.remove(STATE / "kept")
    disk.lose_power()
    assert not disk.exists(STATE / "kept") or disk.read(STATE / "kept") == b"k" * 2_000
    read = disk.read(STATE / "r")
    assert read[:1_024] == b"a" * 1_024
    assert set(read[1_024:1_536]) in ({ord("b")}, {0})
    assert len(read) == 4_096


def test_seeds_lose_and_keep_and_tear():
    found = Counter()
    for seed in range(60):
        disk = sim(seed)
        file = disk.reserve(STATE / "r", 1_024)
        file.write(b"b" * 1_024)
        disk.lose_power()
        found[disk.exists(STATE / "r") and disk.read(STATE / "r").count(b"b")] += 1
    assert {False, 512, 1_024} <= set(found)


def test_a_disk_that_lies_keeps_nothing():
    disk = sim(3, Fault("disk_lie", 0, 10, "gate-1"))
    kept = 0
    for _ in range(40):
        disk.write(STATE / "a", b"a" * 64)
        disk.lose_power()
        kept += disk.exists(STATE / "a") and disk.read(STATE / "a") == b"a" * 64
        disk.remove(STATE / "a")
    assert kept < 40


class Machine:
    """A gate's state over its lives: who grants, what is saved, and the power that goes."""

    def __init__(self, seed):
        self.disk = sim(seed)
        self.now_ms = START_MS
        self.granted = 0

    def life(self, asks, ends, cut, cut_at_start):
        self.now_ms += 10
        try:
            self.disk.cut_at_write(cut_at_start)
            start = snapshot.begin(STATE, self.now_ms, LIMITS, journal=newest(JOURNAL, self.disk), disk=self.disk)
            writer = Writer(JOURNAL, self.now_ms, lambda _: None, Retention(segment_bytes=1_024), self.disk)
            self.disk.cut_at_write(0)
            self.use(start.book, asks)
            self.disk.cut_at_write(cut)
            if ends == "stops":
                writer.close()
                snapshot.finish(STATE, start, journal=newest(JOURNAL, self.disk), disk=self.disk)
        except PowerLost:
            ends = "dark"
        self.disk.process_ended()
        if ends == "dark":
            self.disk.lose_power()

    def use(self, book, asks):
        kernel.define(book, "a", LIMITS["a"])
        for number in range(asks):
            request = Take(f"t{number}", f"l{number}", 0, first_score(0), ((("a", 1, 0),),), 1_000, waits=False)
            self.granted += isinstance(kernel.take(book, request, self.now_ms), Granted)


lives = st.lists(
    st.tuples(
        st.integers(0, 12), st.sampled_from(("stops", "stops", "killed", "dark")), st.integers(0, 9), st.integers(0, 7)
    ),
    max_size=7,
)


@given(st.integers(0, 2**32), lives)
def test_whenever_the_power_goes_nothing_is_granted_twice(seed, plan):
    machine = Machine(seed)
    for asks, ends, cut, cut_at_start in plan:
        machine.life(asks, ends, cut, cut_at_start)
    assert machine.granted <= LIMITS["a"].burst + 1


@pytest.mark.parametrize("cut", range(10))
def test_a_book_that_comes_back_with_the_power_is_not_believed(cut):
    """The mark of a run, the removal of the saved book and the journal's new file may each be lost."""
    for seed in range(150):
        machine = Machine(seed)
        for life in ((6, "stops", cut, 0), (12, "dark", 0, 0), (12, "killed", 0, 0)):
            machine.life(*life)
        assert machine.granted <= LIMITS["a"].burst + 1, seed


def test_after_clean_stops_what_is_left_is_granted():
    machine = Machine(1)
    for _ in range(4):
        machine.life(6, "stops", 0, 0)
    assert machine.granted == LIMITS["a"].burst


@pytest.mark.parametrize("kind", ["disk_full", "disk_error"])
def test_a_book_that_cannot_be_saved_is_no_clean_stop(kind):
    fault = Fault(kind, 5, 10, "gate-1", 1_000 if kind == "disk_error" else 0)
    time = VirtualTime()
    disk = SimDisk("gate-1", time, Weather((fault,), time, Random(1)), Random(1))
    start = snapshot.begin(STATE, START_MS, LIMITS, disk=disk)
    time.run(6)
    with pytest.raises(OSError, match=r"No space|Input/output"):
        snapshot.finish(STATE, start, disk=disk)
    time.run(16)
    assert "did not stop cleanly" in snapshot.begin(STATE, START_MS, LIMITS, disk=disk).sentence


def test_a_journal_whose_disk_fails_says_so_and_never_raises():
    time, said = VirtualTime(), []
    disk = SimDisk("gate-1", time, Weather((Fault("disk_error", 5, 10, "gate-1", 1_000),), time, Random(1)), Random(1))
    writer = Writer(JOURNAL, START_MS, said.append, disk=disk)
    time.run(6)
    assert not writer.sync()
    writer.close()
    assert ["a sync failed" in said[0], "keeps its empty rest" in said[1]] == [True, True]
    time.run(16)
    assert len(listed(JOURNAL, disk)) == 1
