"""Let a job say what its training rows are read as, and which column plays which role."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007_job_data_columns"
down_revision = "0006_rewards"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("data_format", sa.String(32), nullable=True))
    op.add_column("jobs", sa.Column("data_columns", JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("jobs", "data_columns")
    op.drop_column("jobs", "data_format")
