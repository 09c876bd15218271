"""Note how far the metrics of a fine-tuning job were sent to Weights & Biases."""

import sqlalchemy as sa
from alembic import op

revision = "0030_wandb_reports"
down_revision = "0029_shared_engines"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("fine_tuning_jobs", sa.Column("reports_to", sa.String(16), nullable=True))
    op.add_column("fine_tuning_jobs", sa.Column("reported_step", sa.BigInteger(), nullable=True))
    op.add_column("fine_tuning_jobs", sa.Column("reported_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("fine_tuning_jobs", sa.Column("report_error", sa.String(500), nullable=True))
    op.add_column(
        "fine_tuning_jobs", sa.Column("report_failures", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("fine_tuning_jobs", sa.Column("report_due_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drop them; what was sent stays there."""
    for name in ("report_due_at", "report_failures", "report_error"):
        op.drop_column("fine_tuning_jobs", name)
    for name in ("reported_at", "reported_step", "reports_to"):
        op.drop_column("fine_tuning_jobs", name)
