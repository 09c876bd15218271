"""Keep the sampled response that shows what an alarm is about."""

import sqlalchemy as sa
from alembic import op

revision = "0022_alarm_examples"
down_revision = "0021_rollout_groups"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; alarms that were raised before have no example."""
    op.add_column("job_alarms", sa.Column("example_id", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("job_alarms", "example_id")
