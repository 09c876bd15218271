"""Let a person move a queued job: the instant as of which it stands in line."""

import sqlalchemy as sa
from alembic import op

revision = "0031_queue_order"
down_revision = "0030_wandb_reports"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; without a value a job stands where it was queued."""
    op.add_column("jobs", sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drop it; the queue goes by age again."""
    op.drop_column("jobs", "ordered_at")
