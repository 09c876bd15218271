"""Create the table of alarms, and the place where an attempt's watch over its metrics is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0004_job_alarms"
down_revision = "0003_purges"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "job_alarms",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Float(53), nullable=True),
        sa.Column("threshold", sa.Float(53), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("raised_at", INSTANT, nullable=False),
        sa.Column("cleared_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "code"),
    )
    op.create_index("ix_job_alarms_active", "job_alarms", ["is_active", "job_id"])
    op.add_column("job_attempts", sa.Column("watch", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("job_attempts", "watch")
    op.drop_table("job_alarms")
