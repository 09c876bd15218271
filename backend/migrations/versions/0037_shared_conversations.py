"""Keep conversations of the playground behind links."""

import sqlalchemy as sa
from alembic import op

revision = "0037_shared_conversations"
down_revision = "0036_preemption_and_licences"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "shared_conversations",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_by", sa.String(120), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
    )
    op.create_index("ix_shared_conversations_owner", "shared_conversations", ["created_by", "expires_at"])
    op.create_index("ix_shared_conversations_expires_at", "shared_conversations", ["expires_at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("shared_conversations")
