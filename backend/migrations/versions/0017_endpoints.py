"""Create the table of endpoints: models and checkpoints that answer requests."""

import sqlalchemy as sa
from alembic import op

revision = "0017_endpoints"
down_revision = "0016_job_notes_and_star"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "endpoints",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("target_model_id", sa.String(32), nullable=True),
        sa.Column("target_job_id", sa.String(32), nullable=True),
        sa.Column("target_step", sa.BigInteger(), nullable=True),
        sa.Column("idle_timeout_s", sa.Float(), nullable=True),
        sa.Column("max_model_len", sa.BigInteger(), nullable=True),
        sa.Column("ready_attempt", sa.Integer(), nullable=True),
        sa.Column("host", sa.String(64), nullable=True),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("context_length", sa.BigInteger(), nullable=True),
        sa.Column("ready_at", INSTANT, nullable=True),
        sa.Column("last_used_at", INSTANT, nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_endpoints_newest", "endpoints", ["created_at", "id"])
    op.create_index("ix_endpoints_job_id", "endpoints", ["job_id"], unique=True)
    op.create_index("ix_endpoints_model", "endpoints", ["target_model_id"], unique=True)
    op.create_index("ix_endpoints_checkpoint", "endpoints", ["target_job_id", "target_step"], unique=True)


def downgrade() -> None:
    """Drop it. The jobs of endpoints go too: an older release cannot run them."""
    op.execute("DELETE FROM jobs WHERE kind = 'serve'")
    op.drop_table("endpoints")
