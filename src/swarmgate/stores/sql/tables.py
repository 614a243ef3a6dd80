"""
The ledger's tables: what was imported from the journal, joined and priced.

Amounts of money are millionths of a currency unit, instants ms since the epoch. NULL = not known, and never 0: a price that
nobody knows, tokens that nobody told. `estimated` = the target did not tell all of an attempt's tokens, so that they and their
cost are an estimate: sums hold them, and say how much of them that is. Names that callers chose are text as they said it; nobody builds SQL of it.
The schema is changed by migrations only (stores/sql/migrations).
"""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, String, Table

metadata = MetaData()


def _text(name: str, *, key: bool = False) -> Column[str]:
    return Column(name, String, nullable=False, server_default="", primary_key=key)


def _number(name: str, *, key: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0", primary_key=key)


def _unknown(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)


imported = Table(
    "imported",
    metadata,
    Column("id", Integer, primary_key=True),
    _number("segment"),
    _number("offset"),
    _number("rows"),
    _text("run"),
    _number("gap_seq"),
)

calls = Table(
    "calls",
    metadata,
    Column("id", String, primary_key=True),
    _number("arrived_ms"),
    _unknown("ended_ms"),
    _text("end"),
    _text("reason"),
    _number("attempts"),
    _text("agent"),
    _text("task"),
    _text("goal"),
    _text("step"),
    _text("operation"),
    _text("task_type"),
    _text("team"),
    _number("priority"),
    _text("target"),
    _text("model"),
    _text("effect"),
    _text("trace"),
    _text("client_request_id"),
    Index("calls_by_time", "arrived_ms"),
    Index("calls_by_step", "agent", "goal", "step"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("call", String, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    _number("seq"),
    _text("run"),
    _text("target"),
    _text("model"),
    _text("key"),
    _number("rung"),
    _number("policy"),
    _number("sent_ms"),
    _unknown("ended_ms"),
    Column("fate", String, nullable=False),
    _number("prompt"),
    _number("reserve"),
    _text("kind"),
    _text("reason"),
    _number("status"),
    Column("sent", Boolean, nullable=False, server_default="1"),
    _unknown("used"),
    _unknown("prompt_tokens"),
    _unknown("output_tokens"),
    _unknown("cached_tokens"),
    _unknown("content_ms"),
    _unknown("took_ms"),
    _number("queue_ms"),
    _number("sent_bytes"),
    _number("got_bytes"),
    _unknown("cost_micro"),
    Column("estimated", Boolean, nullable=False, server_default="0"),
    Index("attempts_by_target", "target", "sent_ms"),
    Index("attempts_by_time", "sent_ms"),
)

deferrals = Table(
    "deferrals",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _number("at_ms"),
    _text("call"),
    _text("target"),
    _text("model"),
    _text("reason"),
    _number("waited_ms"),
    _number("not_before_ms"),
    _number("certain_ms"),
    _number("position"),
    _number("depth"),
    _text("budget"),
    _text("blocked"),
    Index("deferrals_by_target", "target", "at_ms"),
    Index("deferrals_by_call", "call"),
)

revisions = Table(
    "revisions",
    metadata,
    Column("budget", String, primary_key=True),
    Column("policy", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", Integer, nullable=False),
    _text("target"),
    _text("key"),
    _text("unit"),
    _number("amount"),
    _number("window_ms"),
    _text("kind"),
    _number("burst"),
    _number("quota"),
    _number("per_ms"),
    Column("paused", Boolean, nullable=False, server_default="0"),
    _text("author"),
    _text("reason"),
    _number("since_ms"),
    Index("revisions_by_target", "target", "since_ms"),
)

ways = Table(
    "ways",
    metadata,
    Column("budget", String, primary_key=True),
    Column("target", String, primary_key=True),
    Column("key", String, primary_key=True),
    Index("ways_by_target", "target"),
)

key_events = Table(
    "key_events",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _number("at_ms"),
    _text("target"),
    _text("key"),
    _text("what"),
    _text("reason"),
    _number("until_ms"),
    Index("key_events_by_target", "target", "at_ms"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String, primary_key=True),
    _number("at_ms"),
    _text("call"),
    _text("target"),
    _text("reason"),
    _text("detail"),
    Index("events_by_time", "at_ms"),
    Index("events_by_call", "call"),
)

DOUBTFUL = "doubtful"  # of events: a target told a use that no call can have
CEILING = "ceiling"  # of events: a task type's longest prompt, which holds until the next one

USAGE_KEY = ("hour_ms", "team", "agent", "task", "task_type", "target", "model", "key")
USAGE_SUMS = (
    "attempts",
    "answered",
    "prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "cost_micro",
    "unpriced",
    "estimated_tokens",
    "estimated_micro",
)

usage = Table(
    "usage",
    metadata,
    _number("hour_ms", key=True),
    *(_text(name, key=True) for name in USAGE_KEY[1:]),
    *(_number(name) for name in USAGE_SUMS),
)
