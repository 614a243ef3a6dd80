"""A clean stop is remembered, an unclean one is not trusted (design 4: Cold start; reliability LG-08)."""

import json
import os
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, Take, Usage, first_score
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.stores.memory import snapshot

NOW = 1_700_000_000_000
LIMITS = {
    "a": Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000),
    "s": Limits(BudgetKind.LEASES, burst=3, hold_ms=5_000),
    "c": Limits(BudgetKind.COUNTER, burst=50, window_ms=3_600_000, slices=24),
}


def ask(lease, *demands, rank=0):
    return Take(lease, lease, rank, first_score(rank), (demands,), 10_000, waits=False)


def used_book(steps):
    book = Book(0)
    book.now_ms = NOW
    for name, limits in LIMITS.items():
        kernel.define(book, name, limits)
    now = NOW
    for number, (wait, cost, ends) in enumerate(steps):
        now += wait
        lease = f"l{number}"
        granted = isinstance(kernel.take(book, ask(lease, ("a", cost, 1), ("s", 0, 1), ("c", cost, 0)), now), Granted)
        if granted and ends:
            kernel.settle(book, lease, (Usage("a", 1, 1), Usage("s", 0, 0)), now, last=True)
    return book, now


steps = st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 9), st.booleans()), max_size=30)


@given(steps, st.integers(0, 20_000), st.integers(0, 20))
def test_a_restored_book_decides_as_the_saved_one_would_have(plan, later, cost):
    book, now = used_book(plan)
    copy = snapshot.restored(json.loads(json.dumps(snapshot.saved_form(book))), now, LIMITS.get)
    request = ask("next", ("a", cost, 0), ("s", 0, 1), ("c", cost, 0))
    first, second = (kernel.take(one, request, now + later) for one in (book, copy))
    assert type(first) is type(second)
    if isinstance(first, Denied):  # when others were told to come back is not remembered
        first, second = (one._replace(not_before_ms=0, due_ms=0, certain_ms=0) for one in (first, second))
    assert first == second


LEVEL = Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000)
SLOTS = Limits(BudgetKind.LEASES, burst=3, hold_ms=1_000, lease_ms=2_000)
COUNTED = Limits(BudgetKind.COUNTER, burst=50, window_ms=3_600_000, slices=24)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LEVEL, SLOTS),
        (SLOTS, LEVEL),
        (COUNTED, SLOTS),
        (LEVEL, Limits(BudgetKind.LEVEL, 20, quota=30, window_ms=3_000)),
    ],
)
def test_what_was_used_of_another_kind_of_budget_may_count_for_all_of_it_and_not_for_ever(before, after):
    book = Book(0)
    kernel.define(book, "x", before)
    demand = ("x", 0, 1) if before is SLOTS else ("x", 1, 0)
    assert isinstance(kernel.take(book, ask("used", demand), NOW), Granted)
    copy = snapshot.restored(json.loads(json.dumps(snapshot.saved_form(book))), NOW, {"x": after}.get)
    demand = ("x", 0, 1) if after is SLOTS else ("x", 1, 0)
    denied = kernel.take(copy, ask("next", demand), NOW + 1)
    assert isinstance(denied, Denied)
    assert isinstance(kernel.take(copy, ask("later", demand), NOW + 2_001), Granted)


def test_the_three_ways_to_start(tmp_path):
    folder = tmp_path / "state"
    first = snapshot.begin(folder, NOW, LIMITS)
    assert "first run" in first.sentence
    kernel.define(first.book, "a", LIMITS["a"])
    assert isinstance(kernel.take(first.book, ask("x", ("a", 20, 0)), NOW), Granted)
    snapshot.finish(folder, first)
    again = snapshot.begin(folder, NOW + 100, LIMITS)
    assert "clean stop" in again.sentence
    assert isinstance(kernel.take(again.book, ask("y", ("a", 2, 0)), NOW + 100), Denied)
    os.close(again.lock)  # as the end of its process would
    crashed = snapshot.begin(folder, NOW + 10_000, LIMITS)
    assert "cold" in crashed.sentence
    kernel.define(crashed.book, "a", LIMITS["a"])
    assert isinstance(kernel.take(crashed.book, ask("z", ("a", 1, 0)), NOW + 10_000), Denied)


def test_lg_14_a_book_that_is_gone_is_no_first_run(tmp_path):
    start = snapshot.begin(tmp_path, NOW, LIMITS, journal=1)
    assert "is gone" in start.sentence
    kernel.define(start.book, "a", LIMITS["a"])
    assert isinstance(kernel.take(start.book, ask("x", ("a", 1, 0)), NOW), Denied)


def test_a_broken_file_is_kept_and_counts_as_an_unclean_stop(tmp_path):
    (tmp_path / snapshot.SAVED).write_text('{"version": 1, "cells": ')
    start = snapshot.begin(tmp_path, NOW, LIMITS)
    assert "cold" in start.sentence
    assert start.book.birth_ms == NOW
    assert (tmp_path / "budgets.json.broken").exists()


@pytest.mark.parametrize("seed", range(40))
def test_lg_08_a_book_of_which_a_byte_changed_is_not_believed(tmp_path, seed):
    start = snapshot.begin(tmp_path, NOW, LIMITS)
    kernel.define(start.book, "c", LIMITS["c"])
    kernel.take(start.book, ask("x", ("c", 45, 0)), NOW)
    snapshot.finish(tmp_path, start)
    chance, data = Random(seed), bytearray((tmp_path / snapshot.SAVED).read_bytes())
    at = chance.randrange(len(data))
    data[at] = chance.choice([byte for byte in b"0123456789-x" if byte != data[at]])
    (tmp_path / snapshot.SAVED).write_bytes(data)
    again = snapshot.begin(tmp_path, NOW, LIMITS)
    assert "cold" in again.sentence
    assert (tmp_path / "budgets.json.broken").read_bytes() == data


@pytest.mark.parametrize(("version", "who"), [(1, "an older version"), (99, "a newer version")])
def test_another_version_is_not_guessed_at_and_it_is_told_what_follows(tmp_path, version, who):
    (tmp_path / snapshot.SAVED).write_text(json.dumps({"version": version}))
    start = snapshot.begin(tmp_path, NOW, LIMITS)
    for words in (who, "kept as budgets.json.broken; nothing needs to be done", "start cold (used up)", "whole again"):
        assert words in start.sentence
    assert start.book.birth_ms == NOW


def test_the_saved_file_is_for_its_owner_only(tmp_path):
    start = snapshot.begin(tmp_path, NOW, LIMITS)
    snapshot.finish(tmp_path, start)
    assert (tmp_path / snapshot.SAVED).stat().st_mode & 0o077 == 0


def test_two_gates_do_not_share_a_folder(tmp_path):
    first = snapshot.begin(tmp_path, NOW, LIMITS)
    with pytest.raises(snapshot.FolderInUse, match="another gate"):
        snapshot.begin(tmp_path, NOW, LIMITS)
    snapshot.finish(tmp_path, first)
    assert "clean stop" in snapshot.begin(tmp_path, NOW, LIMITS).sentence


def test_llm_gateways_85_budgets_of_agents_are_remembered_too(tmp_path):
    spent = Limits(BudgetKind.COUNTER, 100, window_ms=86_400_000, slices=24)
    others = {"agent a: USD": spent}.get
    first = snapshot.begin(tmp_path, NOW, {}, others)
    kernel.define(first.book, "agent a: USD", spent)
    request = Take("t", "t", 1, first_score(1), ((("agent a: USD", 70, 0),),), 1_000)
    kernel.take(first.book, request, NOW)
    snapshot.finish(tmp_path, first)
    again = snapshot.begin(tmp_path, NOW + 1, {}, others)
    assert again.book.cells["agent a: USD"].level == 70
    snapshot.finish(tmp_path, again)
    assert "agent a: USD" not in snapshot.begin(tmp_path, NOW + 2, {}).book.cells


def test_lg_14_a_book_of_an_earlier_run_is_not_believed(tmp_path):
    """A backup of it, or a disk that forgot its last changes."""
    first = snapshot.begin(tmp_path, NOW, LIMITS, journal=0)
    snapshot.finish(tmp_path, first, journal=7)
    backup = (tmp_path / snapshot.SAVED).read_bytes()
    second = snapshot.begin(tmp_path, NOW, LIMITS, journal=7)
    assert "clean stop" in second.sentence
    snapshot.finish(tmp_path, second, journal=9)
    (tmp_path / snapshot.SAVED).write_bytes(backup)
    assert "is older than" in snapshot.begin(tmp_path, NOW, LIMITS, journal=9).sentence


def test_lg_14_what_it_counted_is_kept_and_the_rest_is_cold(tmp_path):
    first = snapshot.begin(tmp_path, NOW, LIMITS)
    for name, limits in LIMITS.items():
        kernel.define(first.book, name, limits)
    assert isinstance(kernel.take(first.book, ask("x", ("a", 1, 0), ("c", 40, 0)), NOW), Granted)
    snapshot.finish(tmp_path, first, journal=7)
    later = snapshot.begin(tmp_path, NOW + 60_000, LIMITS, journal=9)
    assert isinstance(kernel.take(later.book, ask("y", ("a", 1, 0)), NOW + 60_000), Denied)
    assert isinstance(kernel.take(later.book, ask("z", ("c", 11, 0)), NOW + 60_000), Denied)
    assert isinstance(kernel.take(later.book, ask("v", ("a", 1, 0), ("c", 10, 0)), NOW + 70_000), Granted)
