"""The caller's own name for its call, as its `x-request-id` said."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of what is there nobody asked."""
    op.add_column("calls", sa.Column("client_request_id", sa.String(), server_default="", nullable=False))


def downgrade() -> None:
    """What callers named their calls would be lost."""
    raise NotImplementedError("restore a backup instead")
