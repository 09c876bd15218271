"""Create the table of transfers: pushes to hubs and exports to GGUF."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024_transfers"
down_revision = "0023_rollout_tokens"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "transfers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("model_name", sa.String(120), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("progress", JSON, nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("touched_at", INSTANT, nullable=True),
    )
    op.create_index("ix_transfers_newest", "transfers", ["created_at", "id"])
    op.create_index("ix_transfers_model", "transfers", ["model_id", "created_at"])
    op.create_index("ix_transfers_queue", "transfers", ["state", "created_at"])


def downgrade() -> None:
    """Drop it; files of exports stay on the disk."""
    op.drop_table("transfers")
