"""Checkpoints that a resume left behind keep their metrics, which another attempt's points don't change."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0043_left_behind_checkpoints"
down_revision = "0042_rollup_sums"
branch_labels = None
depends_on = None

#: What was reported before them is no longer known.
_FILL = """
UPDATE checkpoints SET earlier = '{}' WHERE EXISTS (
    SELECT 1 FROM jobs WHERE jobs.id = checkpoints.job_id AND jobs.attempt > checkpoints.attempt
      AND checkpoints.step > COALESCE(jobs.resume_step, -1)
)
"""


def upgrade() -> None:
    """Add the column, and mark the checkpoints behind each job's last resume."""
    column = sa.Column("earlier", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=True)
    op.add_column("checkpoints", column)
    op.execute(_FILL)


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("checkpoints", "earlier")
