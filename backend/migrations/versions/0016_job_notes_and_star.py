"""Let a job carry notes and a star."""

import sqlalchemy as sa
from alembic import op

revision = "0016_job_notes_and_star"
down_revision = "0015_job_device_memory"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("notes", sa.Text(), nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("is_starred", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("jobs", "is_starred")
    op.drop_column("jobs", "notes")
