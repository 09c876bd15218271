"""Keep what a training job was composed to at its submission.

Jobs from before have none: their launches compose it, as they did.
"""

import sqlalchemy as sa
from alembic import op

revision = "0039_job_configurations"
down_revision = "0038_job_reports"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "job_configurations",
        sa.Column("job_id", sa.String(), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("document", sa.JSON(), nullable=False),
    )


def downgrade() -> None:
    """Drop the table: launches compose again."""
    op.drop_table("job_configurations")
