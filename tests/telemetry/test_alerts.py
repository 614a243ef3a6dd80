from hypothesis import given
from hypothesis import strategies as st

from facts import START_MS, budget, end, intent, note
from swarmgate.stores.journal import rows
from swarmgate.telemetry.alerts import QUIET_MS, RULES, Alerts, Finding, Now
from swarmgate.telemetry.window import LATENCY_EDGES_MS, SLOT_MS, SLOTS, Window


def judged(*batch, at_ms=START_MS + 1_000, **state):
    """What begins after these rows: {alert: [subject, ...]}."""
    window = Window()
    window.hear(batch)
    found: dict[str, list[str]] = {}
    for notice in Alerts().judge(Now(window, **state), at_ms):
        found.setdefault(notice.alert, []).append(notice.subject)
    return found


def notes(count, **said):
    return [note(f"c{number}", **said) for number in range(count)]


def test_the_users_incident_is_named_by_key_model_and_task_type():
    """A mean of 2 s hid a P99 of 40 s (essay A): one batch task among others of the same key and model."""
    healthy = notes(400, task_type="hypotheses", took_ms=1_500)
    blown = [*notes(60, task_type="literature", took_ms=2_500), *notes(3, task_type="literature", took_ms=40_000)]
    assert sum(row.took_ms for row in healthy + blown) / len(healthy + blown) < 2_000
    assert judged(*healthy, *blown) == {"slow_p99": ["openai/k1 m literature"]}


def test_one_or_two_slow_answers_are_no_news():
    slow = {"task_type": "batch", "took_ms": 60_000}
    assert judged(*notes(2, **slow)) == {}
    assert judged(*notes(3, **slow)) == {"slow_p99": ["openai/k1 m batch"]}
    assert judged(*notes(3, **slow), *notes(297, task_type="batch")) == {}
    assert judged(*notes(3, **slow), *notes(296, task_type="batch")) == {"slow_p99": ["openai/k1 m batch"]}
    assert judged(*notes(400, took_ms=8_000)) == {}


def test_what_runs_for_too_long_is_told_before_it_ends():
    leaving = [intent(f"r{number}") for number in range(4)]
    over = note("r3")
    assert judged(*leaving, over, at_ms=START_MS + 8_000) == {}
    assert judged(*leaving, over, at_ms=START_MS + 8_001) == {"slow_p99": ["openai/k1 m (no task type)"]}
    assert judged(*leaving[:2], at_ms=START_MS + 60_000) == {}
    gap = rows.Gap(0, START_MS, 9, START_MS, "No space left on device")
    assert judged(*leaving, gap, at_ms=START_MS + 60_000) == {}


def test_a_slow_p99_is_told_beside_the_mean_that_hides_it():
    window = Window()
    blown = notes(3, task_type="batch", took_ms=39_900, prompt_tokens=240_000)
    window.hear([*notes(97, took_ms=1_000), *blown, intent("r", at_ms=START_MS - 9_000)])
    (notice,) = Alerts().judge(Now(window), START_MS)
    told = ("P99 is up to", "240,000 tokens", "the mean of openai is 2.2 s")
    assert all(words in notice.text for words in told), notice.text


def test_429s_inside_the_budget_mean_that_the_limit_is_wrong():
    refused = notes(4, kind="rate", status=429, end="")
    assert judged(*notes(30), *refused) == {"refused_429": ["openai"], "limit_probably_wrong": ["openai/k1"]}
    assert judged(*notes(200), *notes(2, kind="rate", status=429)) == {}
    host = {"kind": "rate", "status": 429, "end": "", "target": "http://x.org", "key": ""}
    assert judged(*notes(4, **host)) == {"limit_probably_wrong": ["http://x.org"]}  # which has no keys


def test_deferrals_of_a_budget_mean_that_it_is_exhausted():
    assert judged(end(), budgets=[budget(left=0)]) == {"budget_exhausted": ["openai: 5 per 60s"]}
    assert judged(budgets=[budget(left=0, waiting=2)]) == {"budget_exhausted": ["openai: 5 per 60s"]}
    assert judged(budgets=[budget(left=0)]) == {}


def test_a_share_of_deferrals_alarms_when_it_rises_and_not_while_it_stays():
    now = [*notes(80), *[end(f"d{number}") for number in range(30)]]
    assert "deferrals_rising" in judged(*now)
    before = [row for minutes in range(1, 6) for row in deferred_before(minutes)]
    assert "deferrals_rising" not in judged(*before, *now)


def deferred_before(minutes):
    at_ms = START_MS - minutes * 60_000
    return [*notes(80, at_ms=at_ms), *[end(f"d{number}", at_ms) for number in range(30)]]


def test_deferrals_here_while_others_idle_are_poor_planning():
    rows = [*notes(20), *[end(f"d{number}") for number in range(25)]]
    busy, free = budget(left=0), budget("other: 9 per 1s", target="other", left=90)
    assert judged(*rows, budgets=[busy, free])["poor_planning"] == ["openai"]
    assert "poor_planning" not in judged(*rows, budgets=[busy, budget("other", target="other", left=10)])
    assert "poor_planning" not in judged(*rows, budgets=[busy, budget("team a: 9 per 1s", target="", left=90)])


def test_a_key_that_rests_after_each_refusal_tells_of_a_wrong_limit_too():
    """One refusal a minute is all that such a key can get: it is out for 60 s (essay A)."""
    refused = [note(f"r{minute}", START_MS - minute * 65_000, kind="rate", status=429) for minute in (3, 2, 1)]
    assert judged(*notes(3, at_ms=START_MS - 250_000), *refused)["limit_probably_wrong"] == ["openai/k1"]
    many = notes(700, at_ms=START_MS - 250_000)
    assert "limit_probably_wrong" not in judged(*many, *refused)


def test_a_target_that_fails_is_told_whatever_it_fails_by():
    for kind in ("capacity", "server_error", "lost_after_byte", "content_timeout", "connect_failed", "key_refused"):
        assert judged(*notes(16), *notes(4, kind=kind, end="failed")) == {"target_failing": ["openai"]}
        assert judged(*notes(17), *notes(3, kind=kind, end="failed")) == {}
    assert judged(*notes(40, kind="caller_error", end="failed")) == {}


def test_a_key_that_waits_for_a_person_is_told():
    assert judged(dead=["openai/k1"]) == {"key_dead": ["openai/k1"]}


def test_eg_12_an_agent_that_invents_names_is_named():
    asked = [end(f"n{number}", target=f"https://n{number}.evil.org", reason="policy_names") for number in range(20)]
    assert judged(*asked)["many_names"] == ["a1"]
    assert "many_names" not in judged(*asked[1:])


def test_states_of_the_gate():
    agents = [
        {"agent": "a1", "state": "running", "silent_ms": 61_000},
        {"agent": "a2", "state": "running", "silent_ms": 9},
    ]
    assert judged(agents=agents) == {"silent_agent": ["a1"]}
    assert judged(store="does not answer; deciding by local share") == {"store_degraded": ["store"]}
    assert judged(configuration="gate.toml:1: lisen: is unknown\ngate.toml:2: ...") == {
        "configuration_refused": ["configuration"]
    }
    assert judged(budgets=[budget("t", unit="tokens", left=9)]) == {"tokens_nearly_used": ["t"]}
    assert judged(budgets=[budget("t", unit="tokens", left=11)]) == {}
    assert judged(budgets=[budget("t", unit="tokens", left=0, state="paused")]) == {}


@given(st.lists(st.booleans(), max_size=60))
def test_one_notice_per_change_of_state(holds):
    """However often a rule finds the same, it is told once, and its end once it was quiet for a minute."""
    held = [False]
    alerts = Alerts({"x": lambda _: [Finding("s", "text")] if held[0] else []})
    window, told, last_seen, at_ms = Window(), [], None, START_MS
    firing = False
    for held[0] in holds:
        at_ms += QUIET_MS // 4
        told = alerts.judge(Now(window), at_ms)
        last_seen = at_ms if held[0] else last_seen
        expected = last_seen is not None and at_ms - last_seen < QUIET_MS
        assert [notice.begins for notice in told] == ([expected] if expected is not firing else [])
        firing = expected
        assert bool(alerts.firing()) is firing


@given(st.lists(st.integers(0, 400_000), min_size=1, max_size=200))
def test_the_p99_is_the_edge_above_the_true_one(latencies):
    window = Window()
    window.hear([note(f"c{number}", took_ms=took_ms) for number, took_ms in enumerate(latencies)])
    (sends,) = window.sends().values()
    true_ms = sorted(latencies)[-(-len(latencies) * 99 // 100) - 1]
    assert sends.p99_ms() >= min(true_ms, LATENCY_EDGES_MS[-1])
    assert sends.p99_ms() <= max(LATENCY_EDGES_MS[0], true_ms * 1.26)


@given(st.lists(st.integers(0, SLOTS * SLOT_MS), min_size=1, max_size=50))
def test_the_window_forgets_and_never_grows(steps):
    window, at_ms = Window(), START_MS
    for step in steps:
        at_ms += step
        window.hear([note(at_ms=at_ms)])
    recent = [
        total
        for total in [START_MS + sum(steps[: index + 1]) for index in range(len(steps))]
        if total // SLOT_MS > at_ms // SLOT_MS - 6
    ]
    (sends,) = window.sends().values()
    assert sends.sent == len(recent)
    assert len(window._slots) <= SLOTS


def test_every_rule_says_what_it_looks_at():
    assert all(rule.__doc__ for rule in RULES.values())
