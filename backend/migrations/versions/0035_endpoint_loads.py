"""Keep what the engine of an endpoint last said that it is at."""

import sqlalchemy as sa
from alembic import op

revision = "0035_endpoint_loads"
down_revision = "0034_measured_datasets"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; engines say it within seconds of the next request."""
    op.add_column("endpoints", sa.Column("load", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("endpoints", "load")
