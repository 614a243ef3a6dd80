"""Streams of requests that a search found (fuzz.py): each is read as ever, however it is cut, and all readers agree on what is served."""

import json

import pytest
from fuzz import SEEDS
from test_differential import cut, disagreements, ours, outcome

ROWS = json.loads(SEEDS.read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row["raw"])[:60])
def test_hi_02_a_seed_has_the_outcome_that_it_had_however_it_is_cut(row):
    raw = row["raw"].encode("latin-1")
    assert outcome([raw]) == row["outcome"]
    for size in (1, 2, 7):
        said = outcome(cut(raw, [size] * (len(raw) // size)))
        assert said == row["outcome"] or said == [
            *row["outcome"][:-1],
            "not_http",
        ]  # it did not wait for the head's end


@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row["raw"])[:60])
def test_hi_02_on_what_is_served_of_a_seed_all_readers_agree(row):
    raw = row["raw"].encode("latin-1")
    assert disagreements(raw) == []


def test_seeds_are_many_and_some_are_served():
    assert len(ROWS) > 100
    assert sum(bool(ours([row["raw"].encode("latin-1")])) for row in ROWS) > 50
    assert len({row["raw"] for row in ROWS}) == len(ROWS)
