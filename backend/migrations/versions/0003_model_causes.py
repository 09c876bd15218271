"""Causes of models that are not here: a cancelled download says so."""

import sqlalchemy as sa
from alembic import op

revision = "0041_model_causes"
down_revision = "0040_replaceable_engines"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("models", sa.Column("state_cause", sa.String(32), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("models", "state_cause")
