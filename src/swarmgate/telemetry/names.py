"""
The names of all metrics: the one place where a metric, its labels and its meaning are written down.

Labels are bounded: targets, keys, models and task types come from the operator's configuration, and whatever agents make up is
cut off by the registry (metrics.py). Agents, goals and steps are never a label; they stand in the ledger.
"""

from typing import Final, NamedTuple

PREFIX: Final = "swarmgate_"

# Seconds. Dense around 8 s, the trigger of degradation (essay A), so that a P99 near it is not guessed.
LATENCY_EDGES: Final = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 45, 60, 120, 300)
WAIT_EDGES: Final = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 300)


class Name(NamedTuple):
    """One metric: `kind` is counter, gauge or histogram; counters end in `_total`, times are in seconds."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    edges: tuple[float, ...] = ()


_WHO = ("target", "key", "model", "task_type")
_WHERE = ("target", "model", "task_type", "priority")

ATTEMPTS = Name(
    "attempts_total", "counter", (*_WHO, "kind"), "Requests that left, by what came of them (`rate` = 429)."
)
LATENCY = Name("attempt_seconds", "histogram", _WHO, "From the send to the last byte of an answer.", LATENCY_EDGES)
CONTENT = Name("first_content_seconds", "histogram", _WHO, "From the send to the first content.", LATENCY_EDGES)
TOKENS = Name("tokens_total", "counter", (*_WHO, "direction"), "Tokens as targets told them, else estimated.")
BYTES = Name("bytes_total", "counter", ("target", "direction"), "Bytes to and from targets.")
CALLS = Name("calls_total", "counter", (*_WHERE, "end"), "Calls by how they ended; `deferred` is no failure.")
REASONS = Name("ends_total", "counter", ("target", "end", "reason"), "Calls that were not answered, by reason code.")
QUEUE = Name("queue_seconds", "histogram", ("target", "priority"), "From arrival to the first send.", WAIT_EDGES)
DEFERRALS = Name("deferrals_total", "counter", ("target", "budget", "kind"), "What blocked deferred calls.")
RETRIES = Name("retries_total", "counter", ("target", "model"), "Sends of a call after its first.")
RETRIES_LEFT = Name("retry_budget_left", "gauge", ("target", "model"), "Retries that may still be sent now.")
RUNGS = Name("rung_sends_total", "counter", ("target", "model", "rung"), "Sends by rung of the ladder; 0 is the first.")
EJECTIONS = Name("key_events_total", "counter", ("target", "key", "what"), "Keys that left: ejected, or dead.")
AGENT_KEYS = Name("agent_key_changes_total", "counter", ("what",), "Agents' keys that were created, rotated, revoked.")
KEY_OUT = Name(
    "key_out_seconds", "gauge", ("target", "key"), "For how long a key is still out; -1 = until a person acts."
)
LOST = Name("lost_tokens_total", "counter", ("target", "reason"), "Grants of which nothing left.")
COST = Name(
    "cost_micro_total",
    "counter",
    ("team", "target", "model", "task_type"),
    "Cost in millionths of the currency, estimates included.",
)
UNPRICED = Name("unpriced_attempts_total", "counter", ("target", "model"), "Answers whose price is not known.")
DOUBTFUL = Name("doubtful_usage_total", "counter", ("target", "model"), "Counts of tokens that no call can have.")
UNCONNECTED = Name("unconnected_total", "counter", ("target", "kind"), "Connections that could not be had.")
REUSED = Name("pool_reuse_ratio", "gauge", ("target",), "Share of the uses of a pool that needed no new connection.")
POOL_SIZE = Name("pool_size", "gauge", ("target",), "Connections that a pool keeps: 1.3 x pool_mean_in_use, bounded.")
POOL_IN_USE = Name(
    "pool_mean_in_use", "gauge", ("target",), "Rate x response time, measured: the mean in use at its peak of late."
)
UNRECORDED = Name("unrecorded_rows_total", "counter", ("reason",), "Rows that the journal could not take.")
CLOCK_STEPS = Name("clock_steps_total", "counter", (), "Steps of the wall clock.")
REVISIONS = Name("limit_revisions_total", "counter", ("target", "author"), "Changes of limits.")
UTILISATION = Name(
    "budget_used_ratio", "gauge", ("target", "budget", "unit"), "Share of what a budget holds that is in use."
)
REMAINING = Name("budget_remaining", "gauge", ("target", "budget", "priority"), "Units left for a class.")
BACKLOG = Name("backlog_calls", "gauge", ("target", "budget", "priority"), "Calls that wait in a budget's line.")
WATCHED = Name(
    "watched_sends", "gauge", ("policy", "verdict"), "Sends seen by policies that only watch: passed, held_back."
)
OLDEST = Name("oldest_wait_seconds", "gauge", ("target", "priority"), "Age of the call that has waited longest.")
TURNED_AWAY = Name(
    "turned_away_total", "counter", ("lacks",), "Requests that lacked a good key, or words of who calls."
)
DEBT = Name(
    "debt_units_total", "counter", (), "Units beyond what calls had reserved, of all budgets: tokens, micro-dollars."
)
UNATTRIBUTED = Name("unattributed_sends_total", "counter", ("target",), "Sends of calls that named no agent.")
OPEN = Name("open_calls", "gauge", ("state",), "Calls by state.")
ALERTS = Name("alerts_firing", "gauge", ("alert", "subject"), "Alerts that hold now; of agents their number.")
OVERFLOW = Name("label_overflow_total", "counter", ("metric",), "Samples whose labels were cut to `other`.")

ALL: Final = (
    *(ATTEMPTS, LATENCY, CONTENT, TOKENS, BYTES, CALLS, REASONS, QUEUE, DEFERRALS, RETRIES, RUNGS, EJECTIONS, KEY_OUT),
    *(LOST, COST, UNPRICED, UNCONNECTED, UNRECORDED, CLOCK_STEPS, REVISIONS, UTILISATION, REMAINING, BACKLOG, OLDEST),
    *(
        REUSED,
        POOL_SIZE,
        POOL_IN_USE,
        OPEN,
        ALERTS,
        OVERFLOW,
        RETRIES_LEFT,
        AGENT_KEYS,
        DOUBTFUL,
        WATCHED,
        TURNED_AWAY,
        DEBT,
        UNATTRIBUTED,
    ),
)
