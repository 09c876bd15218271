"""Create the table of votes of the playground."""

import sqlalchemy as sa
from alembic import op

revision = "0025_votes"
down_revision = "0024_transfers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "votes",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("voter", sa.String(120), nullable=False),
        sa.Column("model_a", sa.String(200), nullable=False),
        sa.Column("model_b", sa.String(200), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("is_blind", sa.Boolean(), nullable=False),
        sa.Column("messages", sa.JSON(), nullable=False),
        sa.Column("answer_a", sa.String(), nullable=False),
        sa.Column("answer_b", sa.String(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_votes_newest", "votes", ["created_at", "id"])
    op.create_index("ix_votes_models", "votes", ["model_a", "model_b"])


def downgrade() -> None:
    """Drop it; datasets that were made from votes stay."""
    op.drop_table("votes")
