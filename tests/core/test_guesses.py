"""AZ-09: who guesses is slowed by where it comes from, and costs a bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.guesses import AT_ONCE, EACH_MS, MOST_SOURCES, Guess, Guesses, source_of


@given(st.lists(st.integers(0, 3_000), max_size=200))
def test_az_09_no_source_is_answered_faster_than_it_may_guess(waits):
    guesses, now_ms, answered = Guesses(), 0, []
    for wait_ms in waits:
        now_ms += wait_ms
        guess = guesses.wrong("10.0.0.7", now_ms)
        if not guess.wait_ms:
            answered.append(now_ms)
        else:
            assert 0 < guess.wait_ms <= EACH_MS
    for first, at_ms in enumerate(answered):
        assert len([one for one in answered[first:] if one <= at_ms]) <= AT_ONCE
        for last in range(first, len(answered)):
            assert last - first + 1 <= AT_ONCE + (answered[last] - at_ms) // EACH_MS


def test_az_09_ten_thousand_at_once_are_told_once():
    guesses = Guesses()
    found = [guesses.wrong("10.0.0.7", 0) for _ in range(10_000)]
    assert found[:AT_ONCE] == [Guess()] * AT_ONCE
    assert [one.begins for one in found].index(True) == AT_ONCE
    assert sum(one.begins for one in found) == 1
    assert found[-1].wait_ms == EACH_MS
    assert guesses.wrong("10.0.0.7", EACH_MS) == Guess()  # what was held cost nothing more


def test_p14_sources_are_bounded():
    guesses = Guesses()
    for number in range(3 * MOST_SOURCES):
        for _ in range(AT_ONCE + 1):
            guesses.wrong(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0)
    assert len(guesses._paid_ms) == MOST_SOURCES
    assert len(guesses._told) <= MOST_SOURCES


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_one_site_is_one_source(address, source):
    assert source_of(address) == source
