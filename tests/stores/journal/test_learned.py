"""What was learned of hosts over restarts, and what the journal says of it."""

import asyncio

import pytest

from eventually import eventually
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Ceilings, Learned, LearnedLimit
from swarmgate.core.lesson import Lesson
from swarmgate.stores.journal import learned

LEARNED = {
    "a.org": Learned(48 * MICRO, 2 * MICRO, MICRO, 50 * MICRO),
    "group a.org": Learned(96 * MICRO, 4 * MICRO, MICRO),
}


def test_what_is_saved_is_loaded(tmp_path):
    kept = learned.Kept(LEARNED, {"a.org": 10**12})
    assert learned.load(tmp_path) == learned.NOTHING
    learned.save(tmp_path, kept)
    assert learned.load(tmp_path) == kept
    assert (tmp_path / learned.FILE).stat().st_mode & 0o077 == 0


def test_it_is_written_while_the_gate_runs_and_only_if_it_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "EVERY_S", 0.01)
    looks, lessons = [], dict(LEARNED)

    def gather():
        looks.append(1)
        return learned.Kept(dict(lessons))

    async def play():
        keeping = learned.Keeping(asyncio.get_running_loop(), tmp_path, gather, pytest.fail)
        await eventually(lambda: learned.load(tmp_path).lessons == lessons)
        (tmp_path / learned.FILE).unlink()
        seen = len(looks)
        await eventually(lambda: len(looks) > seen + 3)
        assert not (tmp_path / learned.FILE).exists()
        lessons["b.org"] = LEARNED["a.org"]
        await eventually(lambda: learned.load(tmp_path).lessons == lessons)
        keeping.end()

    asyncio.run(play())


def test_a_disk_that_is_full_is_told_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "EVERY_S", 0.01)
    said = []

    async def play():
        folder = tmp_path / "gone"
        keeping = learned.Keeping(asyncio.get_running_loop(), folder, lambda: learned.Kept(LEARNED), said.append)
        await eventually(lambda: len(said) > 1)
        folder.mkdir()
        await eventually(lambda: learned.load(folder).lessons == LEARNED)
        (folder / learned.FILE).unlink()
        folder.rmdir()
        said.clear()
        keeping.end()  # a stop goes on, whatever the disk says
        assert "cannot be kept" in said[-1]

    asyncio.run(play())


@pytest.mark.parametrize("content", [b'{"a.org": "fast"}', b"\x97\x00", b""])
def test_a_file_that_cannot_be_read_is_kept_beside_and_told(tmp_path, content):
    (tmp_path / learned.FILE).write_bytes(content)
    said = []
    assert learned.load(tmp_path, said.append) == learned.NOTHING
    assert (tmp_path / "learned.broken").read_bytes() == content
    assert ["is kept as learned.broken" in one for one in said] == [True]


def test_a_change_is_a_revision_with_its_reason():
    lesson = Lesson("a.org", LearnedLimit(LEARNED["a.org"], 60_000, Ceilings(600, 16, 600), 0))
    told = lesson.learner.told(20)
    row = learned.row((7, 1_000), 3, lesson, lesson.rate_limits(2), told)
    assert (row.seq, row.policy, row.budget, row.revision) == (7, 3, "a.org:learned:rate", 2)
    assert (row.amount, row.window_ms, row.author, row.reason) == (16, 60_000, "learned", "rate: told")
    cap = learned.row((8, 1_000), 4, lesson, lesson.cap_limits(2), lesson.learner.told_cap(1))
    assert (cap.budget, cap.unit, cap.amount, cap.reason) == ("a.org:learned:cap", "concurrent", 1, "cap: told")
