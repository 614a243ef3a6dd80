"""The story of a target: whose budget was kept, whose was wrong, who caused it, and what waiting cost (OP-05)."""

import pytest
from story import START_MS, Story, import_all

from swarmgate.control.page import drawing, page, shown_duration, summary, tables
from swarmgate.control.post_mortem import host_of, post_mortem
from swarmgate.control.tally import LimitVerdict
from swarmgate.core.errors import BadInput
from swarmgate.stores.journal import rows
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.reading import Span

MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An hour at a host whose budget was ten times too high until somebody changed it."""
    folder = tmp_path_factory.mktemp("story")
    story = Story(folder)
    story.boot()
    named = {"target": "https://api.x.org", "model": ""}
    budget = "api.x.org: 60 per 60s"
    story.revision(budget, 60, target="https://api.x.org", policy=1)
    for number in range(120):  # kept, but the target takes six a minute
        refused = number % 10 > 5
        note = {"kind": "rate", "status": 429, "reason": "target_rate"} if refused else {}
        story.answered(f"a{number}", took_ms=900, note=note, agent="eager" if number % 3 else "<b>shy</b>", **named)
        story.ms += 100
    story.ms = START_MS + 30 * MINUTE_MS
    story.revision(
        budget, 6, revision=2, target="https://api.x.org", policy=2, author="ann", reason="they said 6 <script>"
    )
    for number in range(60):
        story.answered(f"b{number}", took_ms=900, **named)
        story.deferred(f"d{number}", budget=budget, wait_ms=36_000, **named)
        story.ms += 10_100
    story.answered("elsewhere", target="https://b.org")
    story.write()
    import_all(folder).close()
    return folder


def told(folder, host="api.x.org", span=Span(START_MS, START_MS + 60 * MINUTE_MS)):  # noqa: B008  frozen
    ledger = Ledger.to_read(folder)
    try:
        return post_mortem(ledger, host, span)
    finally:
        ledger.close()


def test_a_budget_that_was_wrong_and_one_that_was_right(folder):
    story = told(folder)
    first, second = story.rulings
    assert (first.verdict, first.revision, first.amount) == (LimitVerdict.WRONG, 1, 60)
    assert (second.verdict, second.author, second.reason) == (LimitVerdict.RIGHT, "ann", "they said 6 <script>")
    assert story.verdict is LimitVerdict.WRONG
    assert (story.sent, story.refused, story.put_off) == (180, 48, 60)
    assert first.refused == 48
    assert first.most <= 60
    assert second.most <= 6
    after = told(folder, span=Span(START_MS + 30 * MINUTE_MS, START_MS + 60 * MINUTE_MS))
    assert after.verdict is LimitVerdict.RIGHT


def test_who_caused_it_and_what_it_cost_to_wait(folder):
    story = told(folder)
    assert [(row["agent"], row["sent"]) for row in story.causes] == [("eager", 80), ("a1", 60), ("<b>shy</b>", 40)]
    assert [row["step"] for row in story.steps] == ["s1"] * 3
    assert [row["steps"] for row in story.causes] == [1, 1, 1]
    assert story.causes[0]["refused"] + story.causes[2]["refused"] == 48
    (deferral,) = story.deferrals
    assert (deferral["reason"], deferral["deferrals"]) == ("policy_rate", 60)
    assert story.waited_hours == pytest.approx((180 * 50 + 60 * 20) / 3_600_000)
    assert story.asked_hours == pytest.approx(60 * 36 / 3_600)
    assert story.put_off_percent == 25.0
    assert sum(row[0] for row in story.windows.rows) == 180
    assert sum(row[1] for row in story.windows.rows) == 48
    assert sum(row[2] for row in story.windows.rows) == 60


def test_hosts_have_targets_and_the_unknown_are_told_so(folder):
    assert told(folder, "b.org").verdict is LimitVerdict.NONE
    assert told(folder, "https://b.org").sent == 1
    with pytest.raises(BadInput, match=r"https://api\.x\.org"):
        told(folder, "c.org")
    assert told(folder, span=Span(1, 2)).sent == 0


def test_how_calls_ended_stands_in_the_story_also_where_nothing_may_be_sent(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("c1", agent="a1")
    for number, agent in enumerate(("a1", "a2", "a2")):
        story.refused(f"r{number}", "policy_context_ceiling", agent=agent)
    story.refused("x1", "policy_host", target="https://x.denied.org", model="")
    import_all(story.write().folder).close()
    span = Span(START_MS - 1_000, story.ms + 1)
    ends = [tuple(row.values()) for row in told(tmp_path, "up", span).ends]
    assert ends == [("refused", "policy_context_ceiling", 3, 2), ("answered", "", 1, 1)]
    denied = told(tmp_path, "x.denied.org", span)
    assert (denied.sent, denied.ends[0]["reason"]) == (0, "policy_host")


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("https://api.x.org", "api.x.org"),
        ("http://h:8080/path/class", "h"),
        ("https://[2001:db8::1]:8443/", "2001:db8::1"),
        ("openai", "openai"),
    ],
)
def test_the_host_of_a_target(target, host):
    assert host_of(target) == host


def test_the_page_shows_everything_and_runs_nothing(folder):
    story = told(folder)
    text = page(story)
    assert "kept a wrong budget" in text
    assert "&lt;b&gt;shy&lt;/b&gt;" in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "<b>shy" not in text
    assert "http://" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    for title in tables(story):
        assert title in text
    assert all(value in text for _, value in summary(story))


def test_a_drawing_where_matplotlib_is_there_and_tables_where_not(folder, monkeypatch):
    story = told(folder)
    pytest.importorskip("matplotlib")
    drawn = drawing(story)
    assert drawn.startswith("<svg")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert drawing(story) is None
    assert "pip install matplotlib" in page(story)
    assert "Who caused it" in page(story)


def test_a_drawing_of_answers_that_came_within_a_millisecond(tmp_path):
    pytest.importorskip("matplotlib")
    story = Story(tmp_path)
    story.boot()
    for number in range(3):
        story.answered(f"c{number}", took_ms=0)
    import_all(story.write().folder).close()
    found = told(tmp_path, "up")
    assert {one.p99_ms for one in found.moments} == {0}
    assert drawing(found).startswith("<svg")


def test_a_limit_that_hosts_share_counts_all_of_them(tmp_path):
    story = Story(tmp_path)
    story.boot()
    shared = "x.org: 10 per 60s"
    story.revision(shared, 10, target="https://a.x.org", policy=1)
    story.budgets["https://b.x.org"] = {shared: None}
    for number in range(12):
        story.answered(f"c{number}", took_ms=100, target=f"https://{'ab'[number % 2]}.x.org", model="")
    import_all(story.write().folder).close()
    for host in ("a.x.org", "b.x.org"):
        found = told(tmp_path, host)
        assert found.sent == 6
        assert [(one.most, one.verdict) for one in found.rulings] == [(12, LimitVerdict.BROKE)]


def test_limits_of_each_key_stand_as_their_sum_beside_what_all_of_them_sent(tmp_path):
    story = Story(tmp_path)
    story.boot()
    for key in range(1, 10):
        story.revision(f"up/key-{key}: requests per 60s", 100, policy=1)
        story.ways.add(("up", f"key-{key}"))
        story.add(rows.Way, "up", f"key-{key}", (f"up/key-{key}: requests per 60s", "up: requests per 60s"))
    story.revision("up: requests per 60s", 400, policy=1)
    story.answered("c1", key="key-1")
    story.ms += 30_000
    story.revision("up/key-7: requests per 60s", 50, policy=2, revision=2)
    import_all(story.write().folder).close()
    found = tables(told(tmp_path, "up", Span(START_MS, START_MS + MINUTE_MS)))["Sent per 60 s"]
    assert found == (
        (
            "from",
            "sent",
            "429s",
            "put off",
            "limits of up/key-1: requests per 60s, and 8 more, together",
            "limit of up: requests per 60s",
        ),
        [["2026-09-21T14:13:20", "1", "0", "0", "850", "400"]],
    )


def test_what_happened_is_told_in_words(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.ends(story.leaves("c1", target="http://x.org", key="", model=""), kind="rate", end="", out_ms=1_000)
    story.ends(story.leaves("c2", target="up", key="k1"), kind="rate", end="", out_ms=1_000)
    import_all(story.write().folder).close()
    span = Span(START_MS, START_MS + MINUTE_MS)
    (_, boot), (_, rests) = (
        (row[0], row[1:]) for row in tables(told(tmp_path, "x.org", span))["What else happened"][1]
    )
    assert boot == ["boot", "run1", "version 0.1.0, pid 7"]
    assert rests == ["host rests", "", ""]
    assert tables(told(tmp_path, "up", span))["What else happened"][1][1][1:] == ["ejected", "", "k1"]


@pytest.mark.parametrize(
    ("ms", "shown"), [(0, "0.0 s"), (119_999, "120.0 s"), (120_000, "2.0 min"), (7_200_000, "2.0 h"), (-5, "0.0 s")]
)
def test_durations_are_told_in_the_unit_that_fits(ms, shown):
    assert shown_duration(ms) == shown
