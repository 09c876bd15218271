"""Say which endpoints make room for which trainings, and under which licences the rows of datasets are."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0036_preemption_and_licences"
down_revision = "0035_endpoint_loads"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the columns; endpoints that exist may be preempted, and no licence is known."""
    op.add_column(
        "endpoints", sa.Column("is_preemptible", sa.Boolean(), nullable=False, server_default=sa.true())
    )
    op.add_column("endpoints", sa.Column("preempted_by", sa.String(32), nullable=True))
    op.add_column("datasets", sa.Column("licences", JSON, nullable=False, server_default="[]"))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("datasets", "licences")
    op.drop_column("endpoints", "preempted_by")
    op.drop_column("endpoints", "is_preemptible")
