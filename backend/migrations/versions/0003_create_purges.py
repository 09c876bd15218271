"""Create the table of deleted jobs whose files are still to be removed."""

import sqlalchemy as sa
from alembic import op

revision = "0003_purges"
down_revision = "0002_datasets_models"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "purges",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("purges")
