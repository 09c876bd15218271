"""Say which endpoints make room for trainings, and which training one made room for."""

import sqlalchemy as sa
from alembic import op

revision = "0036_preempted_endpoints"
down_revision = "0035_endpoint_loads"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; endpoints that exist may be preempted."""
    op.add_column(
        "endpoints", sa.Column("is_preemptible", sa.Boolean(), nullable=False, server_default=sa.true())
    )
    op.add_column("endpoints", sa.Column("preempted_by", sa.String(32), nullable=True))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("endpoints", "preempted_by")
    op.drop_column("endpoints", "is_preemptible")
