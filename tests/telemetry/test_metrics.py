import ast
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

import swarmgate.telemetry
from facts import START_MS, budget, end, intent, note
from swarmgate.core.price import NO_COUNT
from swarmgate.stores.journal import rows
from swarmgate.telemetry import names
from swarmgate.telemetry.alerts import RULES
from swarmgate.telemetry.metrics import Metrics
from swarmgate.telemetry.registry import OTHER, Registry

FOLDER = Path(swarmgate.telemetry.__file__).parent


def cheap(_target, model, prompt, output, _cached, _at_ms):
    return None if model == "unpriced" else prompt + 4 * output


def scraped(metrics):
    """Every sample as {(name, labels): value}."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def value(metrics, name, **labels):
    return scraped(metrics).get((names.PREFIX + name, tuple(sorted(labels.items()))), 0)


def test_an_answer_is_counted_with_its_key_model_and_task_type():
    metrics = Metrics(cheap)
    metrics.hear([intent(), note(task_type="literature", took_ms=7_900)])
    who = {"target": "openai", "key": "k1", "model": "m", "task_type": "literature"}
    assert value(metrics, "attempts_total", **who, kind="ok") == 1
    assert value(metrics, "attempt_seconds_bucket", **who, le="7.0") == 0
    assert value(metrics, "attempt_seconds_bucket", **who, le="8.0") == 1
    assert value(metrics, "tokens_total", **who, direction="output") == 50
    assert value(metrics, "cost_micro_total", team="", target="openai", model="m", task_type="literature") == 300
    ended = {"target": "openai", "model": "m", "task_type": "literature", "priority": "P1", "end": "answered"}
    assert value(metrics, "calls_total", **ended) == 1


def test_an_unknown_price_is_visible_and_no_cost():
    metrics = Metrics(cheap)
    metrics.hear([note(model="unpriced")])
    assert value(metrics, "unpriced_attempts_total", target="openai", model="unpriced") == 1
    assert not [name for name, _ in scraped(metrics) if name == "swarmgate_cost_micro_total"]


def test_a_deferral_names_what_blocked_it():
    metrics = Metrics(cheap)
    metrics.hear([end()])
    assert value(metrics, "deferrals_total", target="openai", budget="openai: 5 per 60s", kind="time") == 1
    assert value(metrics, "ends_total", target="openai", end="deferred", reason="policy_rate") == 1


def test_a_key_that_is_out_counts_down_and_comes_back():
    metrics = Metrics(cheap)
    metrics.hear([note(kind="rate", status=429, out_ms=60_000), note(key="k2", kind="no_money", status=429, out_ms=-1)])
    metrics.keys_out([("openai", "k1", 40_000), ("openai", "k2", -1)])
    assert value(metrics, "key_out_seconds", target="openai", key="k1") == 40
    assert value(metrics, "key_out_seconds", target="openai", key="k2") == -1
    assert value(metrics, "key_events_total", target="openai", key="k1", what="ejected") == 1
    assert value(metrics, "key_events_total", target="openai", key="k2", what="dead") == 1
    metrics.keys_out([])
    assert not [name for name, _ in scraped(metrics) if name == "swarmgate_key_out_seconds"]


def test_a_use_that_no_call_can_have_is_flagged_and_not_counted():
    metrics = Metrics(cheap)
    metrics.hear([note(output_tokens=1 << 60), note(output_tokens=50), note(output_tokens=NO_COUNT)])
    assert value(metrics, "doubtful_usage_total", target="openai", model="m") == 2
    who = {"target": "openai", "key": "k1", "model": "m", "task_type": ""}
    assert value(metrics, "tokens_total", **who, direction="output") == 50


def test_what_is_left_of_retries():
    metrics = Metrics(cheap)
    metrics.retries([("openai", "m", 10), ("gone", "m", 1)])
    metrics.retries([("openai", "m", 9)])
    assert value(metrics, "retry_budget_left", target="openai", model="m") == 9
    assert "gone" not in metrics.render().decode()


def test_what_policies_that_only_watch_have_seen():
    metrics = Metrics(cheap)
    metrics.watched([("papers", 7, 2), ("gone", 1, 1)])
    metrics.watched([("papers", 8, 2)])
    assert value(metrics, "watched_sends", policy="papers", verdict="passed") == 8
    assert value(metrics, "watched_sends", policy="papers", verdict="held_back") == 2
    assert "gone" not in metrics.render().decode()


def test_changes_of_agents_keys_are_counted_without_their_ids():
    metrics = Metrics(cheap)
    metrics.hear([rows.KeyEvent(1, START_MS, "", "3f9c2a71d0", "revoked", "ann@lab")])
    assert value(metrics, "agent_key_changes_total", what="revoked") == 1
    assert b"3f9c2a71d0" not in metrics.render()


def test_the_gate_as_it_stands():
    metrics = Metrics(cheap)
    metrics.state([budget(left=25, waiting=2)], {"queued": 2, "running": 1}, [("openai", "P2", 4_000)])
    assert value(metrics, "budget_used_ratio", target="openai", budget="openai: 5 per 60s", unit="requests") == 0.75
    assert value(metrics, "backlog_calls", target="openai", budget="openai: 5 per 60s", priority="P1") == 2
    assert value(metrics, "oldest_wait_seconds", target="openai", priority="P2") == 4
    assert value(metrics, "open_calls", state="queued") == 2
    metrics.state([], {}, [])
    assert not [name for name, _ in scraped(metrics) if name in {"swarmgate_open_calls", "swarmgate_backlog_calls"}]


def test_how_often_a_connection_was_ready_and_how_many_a_pool_keeps():
    metrics = Metrics(cheap)
    pool = {"reused_permille": 950, "size": 260, "mean_permille": 199_500}
    metrics.pools({"openai": pool, "gone": pool})
    metrics.pools({"openai": pool | {"reused_permille": 910}})
    assert value(metrics, "pool_reuse_ratio", target="openai") == 0.91
    assert value(metrics, "pool_size", target="openai") == 260
    assert value(metrics, "pool_mean_in_use", target="openai") == 199.5
    assert not [name for name, labels in scraped(metrics) if ("target", "gone") in labels]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=60))
def test_labels_are_bounded_and_nothing_is_lost(models):
    metrics = Metrics(cheap, Registry(most_series=5))
    for model in models:
        metrics.hear([note(model=model)])
    seen = {
        dict(labels)["model"]: count
        for (name, labels), count in scraped(metrics).items()
        if name.endswith("attempts_total")
    }
    assert len(seen) <= 6
    assert sum(seen.values()) == len(models)
    if len(set(models) - {OTHER}) > 5:
        assert value(metrics, "label_overflow_total", metric="attempts_total") > 0


def test_a_deferral_by_an_agents_or_a_keys_own_cap_names_neither():
    metrics = Metrics(cheap)
    owners = ("agent red a17: requests per 60s", "agent a18: requests per 60s", "key 3f9c: 5 USD per 86400s")
    metrics.hear([end(budget=budget) for budget in owners])
    assert value(metrics, "deferrals_total", target="openai", budget="caps of single agents and keys", kind="time") == 3
    assert b"a17" not in metrics.render()


def test_an_alert_about_agents_tells_how_many():
    metrics = Metrics(lambda *_: None)
    metrics.alerts([("silent_agent", "a1"), ("silent_agent", "a2"), ("slow_p99", "openai/k1 m batch")])
    assert value(metrics, "alerts_firing", alert="silent_agent", subject="") == 2
    assert value(metrics, "alerts_firing", alert="slow_p99", subject="openai/k1 m batch") == 1
    assert b"a1" not in metrics.render()


def test_az_14_agents_are_never_a_label():
    labels = {label for name in names.ALL for label in name.labels}
    assert labels.isdisjoint({"agent", "goal", "step", "task", "call", "request_id", "trace"})


def test_a_scrape_has_no_instant_beside_each_counter():
    metrics = Metrics(cheap)
    metrics.hear([note()])
    assert not [name for name, _ in scraped(metrics) if name.endswith("_created")]


def test_every_name_is_made_once_and_only_here():
    constants = [one for one in vars(names).values() if isinstance(one, names.Name)]
    assert sorted(constants) == sorted(names.ALL)
    assert len({one.name for one in constants}) == len(constants)
    for file in FOLDER.parent.rglob("*.py"):
        if file.name != "names.py":
            strings = [node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)]
            assert not [
                text
                for text in strings
                if isinstance(text, str) and text.startswith("swarmgate_") and text != "swarmgate_"
            ], file


def test_shipped_rules_cover_every_alert_and_use_metrics_that_exist():
    text = (FOLDER / "prometheus_rules.yml").read_text()
    assert sorted(re.findall(r"- alert: (\w+)", text)) == sorted(RULES)
    known = {one.name for one in names.ALL} | {f"{one.name}_bucket" for one in names.ALL if one.kind == "histogram"}
    assert set(re.findall(r"swarmgate_(\w+)", text)) <= known
    for name, labels in re.findall(r"swarmgate_(\w+)\{([^}]*)\}", text):
        declared = next(one for one in names.ALL if one.name == name.removesuffix("_bucket"))
        assert {re.split("[!=]", pair)[0] for pair in labels.split(",")} <= set(declared.labels)


def test_p12_sends_of_nobody_and_requests_that_were_turned_away_are_counted():
    metrics = Metrics(cheap)
    metrics.hear([intent("req-1"), intent("req-2", agent="")])
    for counts in ({"identity": 2, "key": 0}, {"identity": 5, "key": 1}, {"identity": 5, "key": 1}):
        metrics.turned_away(counts)
    assert value(metrics, "unattributed_sends_total", target="openai") == 1
    assert value(metrics, "turned_away_total", lacks="identity") == 5
    assert value(metrics, "turned_away_total", lacks="key") == 1
