"""Whether a newer checkpoint can take over the engine of an endpoint."""

import sqlalchemy as sa
from alembic import op

revision = "0040_replaceable_engines"
down_revision = "0039_job_configurations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Engines that run already can't take other weights: they were started without."""
    op.add_column(
        "endpoints", sa.Column("is_replaceable", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("endpoints", "is_replaceable")
