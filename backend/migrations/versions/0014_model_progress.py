"""Let a model say how far its fetch is."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014_model_progress"
down_revision = "0013_job_validation_columns"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the column."""
    op.add_column("models", sa.Column("progress", JSON, nullable=True))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("models", "progress")
