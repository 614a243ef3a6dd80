"""Use that no target told: which attempts carry an estimate, and how much of each hour is one."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What is there was told by targets, or is not known."""
    op.add_column("attempts", sa.Column("estimated", sa.Boolean(), server_default="0", nullable=False))
    op.add_column("usage", sa.Column("estimated_tokens", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("usage", sa.Column("estimated_micro", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    """An older program would take estimates for what was told."""
    raise NotImplementedError("restore a backup instead")
