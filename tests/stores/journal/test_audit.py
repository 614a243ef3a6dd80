"""AZ-13: whatever is done to the record of operators' changes afterwards breaks its chain, and is told with the line."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarmgate.core.errors import BadInput
from swarmgate.stores.journal.audit import FILE, FIRST, LONGEST, MOST_LINE_BYTES, Audit

TEXTS = st.text(max_size=30)


def written(folder, count=5):
    audit = Audit(folder)
    for number in range(count):
        told = {"limit": f"{number} per 60000 ms"}
        audit.add(1_000 + number, "ann@desk", "limit set", "openai", old={}, new=told, reason="they asked")
    return audit


def test_who_when_what_old_and_new_in_order(tmp_path):
    audit = written(tmp_path)
    chain = audit.read()
    assert [change.number for change in chain.changes] == [1, 2, 3, 4, 5]
    assert chain.changes[0].before == FIRST
    second = chain.changes[1]
    assert (second.at_ms, second.who, second.what, second.subject) == (1_001, "ann@desk", "limit set", "openai")
    assert (second.new, second.reason) == ({"limit": "1 per 60000 ms"}, "they asked")
    assert chain.verdict() == chain.verdict(second.hash) == chain.verdict(FIRST) == ""
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_nothing_was_changed_where_there_is_no_file(tmp_path):
    chain = Audit(tmp_path).read()
    assert (chain.changes, chain.newest, chain.verdict()) == ([], FIRST, "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_az_13_every_touch_breaks_the_chain(tmp_path, data):
    (tmp_path / FILE).unlink(missing_ok=True)
    audit = written(tmp_path)
    newest = audit.read().newest
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    way = data.draw(st.sampled_from(["edit", "drop", "swap", "twice", "empty", "cut"]))
    match way:
        case "edit":
            old = data.draw(st.sampled_from([b"ann@desk", b"limit set", b'"at_ms":100', b"they asked", b'"number":']))
            lines[at] = lines[at].replace(old, old[:-1] + bytes([old[-1] ^ 1]))
        case "drop":
            del lines[at]
        case "swap":
            other = data.draw(st.integers(0, len(lines) - 1).filter(lambda one: one != at))
            lines[at], lines[other] = lines[other], lines[at]
        case "twice":
            lines.insert(at, lines[at])
        case "empty":
            lines.insert(at, b"\n")
        case "cut":
            lines[at] = lines[at][: len(lines[at]) // 2] + b"\n"
    (tmp_path / FILE).write_bytes(b"".join(lines))
    chain = audit.read()
    if way == "drop" and at == 4:
        assert chain.verdict() == ""  # an end that is gone shows only to who knows the newest hash
    else:
        assert chain.verdict().startswith("line ")
        assert at + 1 <= chain.broken_at <= len(lines) or way in {"swap", "drop"}
    assert chain.verdict(newest)


def test_az_13_a_chain_made_anew_shows_to_who_kept_a_hash(tmp_path):
    newest = written(tmp_path).read().newest
    (tmp_path / FILE).unlink()
    audit = written(tmp_path, 7)
    assert audit.read().verdict(newest) == ""  # the very same five, and two more
    (tmp_path / FILE).unlink()
    audit.add(1, "bob", "limit set", "openai", old={}, new={})
    assert audit.read().verdict() == ""
    assert "anew" in audit.read().verdict(newest)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3)), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_whatever_people_write_stands_as_they_wrote_it(tmp_path, told):
    (tmp_path / FILE).unlink(missing_ok=True)
    audit = Audit(tmp_path)
    for who, subject, new in told:
        audit.add(1, who, "limit set", subject, old={}, new=new)
    chain = audit.read()
    assert not chain.verdict()
    assert [(one.who, one.subject, one.new) for one in chain.changes] == told


def test_long_values_are_cut_and_show_it(tmp_path):
    audit = Audit(tmp_path)
    audit.add(1, "x" * 9_000, "limit set", "y" * 9_000, old={}, new={"a": "z" * 9_000})
    (change,) = audit.read().changes
    assert (len(change.who), len(change.subject), change.new["a"][-3:]) == (LONGEST, LONGEST, "...")


def test_the_largest_change_fits_and_the_next_follows_it(tmp_path):
    audit = Audit(tmp_path)
    much = {f"{number:>300}": "\x01" * 9_000 for number in range(-400, 0)}
    for _ in range(2):
        audit.add(1, "x" * 9_000, "limit set", "y" * 9_000, old=much, new=much, reason="z" * 9_000)
    chain = audit.read()
    assert (len(chain.changes), chain.verdict()) == (2, "")
    assert chain.changes[0].old["..."] == "and 300 more"
    assert (tmp_path / FILE).stat().st_size < 2 * MOST_LINE_BYTES


def test_two_processes_make_one_chain(tmp_path):
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: written(tmp_path), range(4)))  # each opens the file anew, as a process does
    chain = Audit(tmp_path).read()
    assert (len(chain.changes), chain.verdict()) == (20, "")


def test_a_torn_line_is_told_and_the_next_one_stands_on_its_own(tmp_path):
    audit = written(tmp_path)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"number":6,"at_')
    audit.add(9, "ann", "paused", "openai", old={}, new={})
    chain = audit.read()
    assert chain.verdict() == "line 6 is no whole line"
    assert chain.changes[-1].number == 6


def test_what_cannot_be_put_on_file_is_told_and_leaves_no_half_line(tmp_path, monkeypatch):
    audit = written(tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left"):
        audit.add(9, "ann", "paused", "openai", old={}, new={})
    assert (tmp_path / FILE).read_bytes() == before


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput):
        written(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
