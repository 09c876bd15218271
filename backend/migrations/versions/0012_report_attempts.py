"""Reports count how often a worker has taken them up."""

import sqlalchemy as sa
from alembic import op

revision = "0012_report_attempts"
down_revision = "0011_agents"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Count from zero."""
    op.add_column("reports", sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Forget the counts."""
    op.drop_column("reports", "attempts")
