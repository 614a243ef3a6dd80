"""What a span of time cost is what the attempts that ended in it did, wherever it begins and ends."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from swarmgate.stores.sql import tables
from swarmgate.stores.sql.costs import GROUPS, HOUR_MS, costs
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.reading import Span

sys.path.insert(0, str(Path(__file__).parents[2] / "control"))
from story import Story, import_all

START_MS = 1_790_002_800_000  # an hour's beginning
assert START_MS % HOUR_MS == 0


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """Five hours with a call every seven minutes: answered, counted or estimated, refused, never answered because the gate died."""
    folder = tmp_path_factory.mktemp("hours")
    story = Story(folder, START_MS)
    story.boot()
    for number in range(42):
        story.ms = START_MS + number * 7 * 60_000
        who = {"agent": f"a{number % 3}", "team": "blue" if number % 2 else "red", "target": f"t{number % 2}"}
        intent = story.leaves(f"c{number}", key="k", **who)
        if number % 5 == 0:
            story.ends(intent, kind="rate", end="failed", prompt_tokens=-1, output_tokens=-1)
        elif number != 37:
            story.ends(intent, took_ms=90_000, estimated=number % 4 == 0)
    story.ms = START_MS + 5 * HOUR_MS
    story.boot("run2")
    import_all(story.write().folder, lambda *told: 10 * told[2] + told[3]).close()
    opened = Ledger.opened(folder)
    yield opened
    opened.close()


def by_hand(link, by, span):
    found = {}
    rows = link.execute(tables.attempts.join(tables.calls, tables.calls.c.id == tables.attempts.c.call).select())
    for row in map(dict, rows.mappings()):
        if row["ended_ms"] is None or not span.from_ms <= row["ended_ms"] < span.to_ms:
            continue
        name = f"{row['target']}/{row['key']}" if by == "key" else row[by]
        one = found.setdefault(name, [0] * 6)
        cost = row["cost_micro"]
        guessed = (row["prompt_tokens"] + row["output_tokens"], cost) if row["estimated"] else (0, 0)
        for at, more in enumerate((1, row["kind"] == "ok", cost or 0, cost is None, *guessed)):
            one[at] += more
    return found


def told(link, by, span):
    parts = ("attempts", "answered", "cost_micro", "unpriced", "estimated_tokens", "estimated_micro")
    return {row["name"]: [row[part] for part in parts] for row in costs(link, by, span)}


@given(st.sampled_from(GROUPS), st.integers(-60, 330), st.integers(0, 330))
@settings(max_examples=60, deadline=None)
def test_any_span_counts_what_ended_in_it(ledger, by, from_minute, minutes):
    span = Span(START_MS + from_minute * 60_000, START_MS + (from_minute + minutes) * 60_000)
    with ledger.connection() as link:
        if from_minute >= 0:
            assert told(link, by, span) == by_hand(link, by, span)
        else:  # before the first attempt nobody knows what was forgotten: its hour counts whole
            wide = Span(min(START_MS, span.to_ms), span.to_ms)
            assert told(link, by, span) == by_hand(link, by, wide)


def test_an_hour_whose_attempts_are_forgotten_counts_whole(tmp_path):
    story = Story(tmp_path, START_MS)
    story.boot()
    for number in range(12):
        story.ms = START_MS + number * 10 * 60_000
        story.answered(f"c{number}")
    importer = import_all(story.write().folder)
    span = Span(START_MS + 30 * 60_000, START_MS + 2 * HOUR_MS)
    with importer.ledger.connection() as link:
        assert [row["attempts"] for row in costs(link, "team", span)] == [9]
        link.execute(delete(tables.attempts).where(tables.attempts.c.sent_ms < START_MS + HOUR_MS))
        assert [row["attempts"] for row in costs(link, "team", span)] == [12]
    importer.close()
