"""Let a job say what its validation rows are read as, where they have columns of their own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013_job_validation_columns"
down_revision = "0012_report_attempts"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("validation_data_format", sa.String(32), nullable=True))
    op.add_column("jobs", sa.Column("validation_columns", JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("jobs", "validation_columns")
    op.drop_column("jobs", "validation_data_format")
