"""Let a job keep the memory of the device that it was submitted for."""

import sqlalchemy as sa
from alembic import op

revision = "0015_job_device_memory"
down_revision = "0014_model_progress"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("device_memory_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("jobs", "device_memory_bytes")
