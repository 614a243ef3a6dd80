"""What was learned of hosts over restarts, and what the journal says of it."""

import pytest

from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Ceilings, Learned, LearnedLimit
from swarmgate.core.lesson import Lesson
from swarmgate.stores.journal import learned

LEARNED = {
    "a.org": Learned(48 * MICRO, 2 * MICRO, MICRO, 50 * MICRO),
    "group a.org": Learned(96 * MICRO, 4 * MICRO, MICRO),
}


def test_what_is_saved_is_loaded(tmp_path):
    assert learned.load(tmp_path) == {}
    learned.save(tmp_path, LEARNED)
    assert learned.load(tmp_path) == LEARNED
    assert (tmp_path / learned.FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b'{"a.org": "fast"}', b"\x97\x00", b""])
def test_a_file_that_cannot_be_read_is_kept_beside_and_told(tmp_path, content):
    (tmp_path / learned.FILE).write_bytes(content)
    said = []
    assert learned.load(tmp_path, said.append) == {}
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
