"""The first ledger: calls, attempts, deferrals, revisions, key events, events, usage, and how far was imported."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "attempts",
        sa.Column("call", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("run", sa.String(), server_default="", nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("model", sa.String(), server_default="", nullable=False),
        sa.Column("key", sa.String(), server_default="", nullable=False),
        sa.Column("rung", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("policy", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sent_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("fate", sa.String(), nullable=False),
        sa.Column("prompt", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserve", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("kind", sa.String(), server_default="", nullable=False),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("status", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sent", sa.Boolean(), server_default="1", nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("content_ms", sa.BigInteger(), nullable=True),
        sa.Column("took_ms", sa.BigInteger(), nullable=True),
        sa.Column("queue_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sent_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("got_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("call", "attempt"),
    )
    op.create_index("attempts_by_target", "attempts", ["target", "sent_ms"], unique=False)
    op.create_index("attempts_by_time", "attempts", ["sent_ms"], unique=False)
    op.create_table(
        "calls",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("arrived_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("end", sa.String(), server_default="", nullable=False),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("agent", sa.String(), server_default="", nullable=False),
        sa.Column("task", sa.String(), server_default="", nullable=False),
        sa.Column("goal", sa.String(), server_default="", nullable=False),
        sa.Column("step", sa.String(), server_default="", nullable=False),
        sa.Column("operation", sa.String(), server_default="", nullable=False),
        sa.Column("task_type", sa.String(), server_default="", nullable=False),
        sa.Column("team", sa.String(), server_default="", nullable=False),
        sa.Column("priority", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("model", sa.String(), server_default="", nullable=False),
        sa.Column("effect", sa.String(), server_default="", nullable=False),
        sa.Column("trace", sa.String(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("calls_by_step", "calls", ["agent", "goal", "step"], unique=False)
    op.create_index("calls_by_time", "calls", ["arrived_ms"], unique=False)
    op.create_table(
        "deferrals",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("call", sa.String(), server_default="", nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("model", sa.String(), server_default="", nullable=False),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("waited_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("not_before_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("certain_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("position", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("depth", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("budget", sa.String(), server_default="", nullable=False),
        sa.Column("blocked", sa.String(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("deferrals_by_call", "deferrals", ["call"], unique=False)
    op.create_index("deferrals_by_target", "deferrals", ["target", "at_ms"], unique=False)
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("call", sa.String(), server_default="", nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("detail", sa.String(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("seq", "kind"),
    )
    op.create_index("events_by_call", "events", ["call"], unique=False)
    op.create_index("events_by_time", "events", ["at_ms"], unique=False)
    op.create_table(
        "imported",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("segment", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("offset", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("run", sa.String(), server_default="", nullable=False),
        sa.Column("gap_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "key_events",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("key", sa.String(), server_default="", nullable=False),
        sa.Column("what", sa.String(), server_default="", nullable=False),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("until_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("key_events_by_target", "key_events", ["target", "at_ms"], unique=False)
    op.create_table(
        "revisions",
        sa.Column("budget", sa.String(), nullable=False),
        sa.Column("policy", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("key", sa.String(), server_default="", nullable=False),
        sa.Column("unit", sa.String(), server_default="", nullable=False),
        sa.Column("amount", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("window_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("kind", sa.String(), server_default="", nullable=False),
        sa.Column("burst", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("quota", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("per_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("paused", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("author", sa.String(), server_default="", nullable=False),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("since_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("budget", "policy"),
    )
    op.create_index("revisions_by_target", "revisions", ["target", "since_ms"], unique=False)
    op.create_table(
        "ways",
        sa.Column("budget", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("budget", "target", "key"),
    )
    op.create_index("ways_by_target", "ways", ["target"], unique=False)
    op.create_table(
        "usage",
        sa.Column("hour_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("team", sa.String(), server_default="", nullable=False),
        sa.Column("agent", sa.String(), server_default="", nullable=False),
        sa.Column("task", sa.String(), server_default="", nullable=False),
        sa.Column("task_type", sa.String(), server_default="", nullable=False),
        sa.Column("target", sa.String(), server_default="", nullable=False),
        sa.Column("model", sa.String(), server_default="", nullable=False),
        sa.Column("key", sa.String(), server_default="", nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("answered", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("unpriced", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("hour_ms", "team", "agent", "task", "task_type", "target", "model", "key"),
    )


def downgrade() -> None:
    """There is nothing before it."""
    raise NotImplementedError("restore a backup instead")
