"""Keep what machines measured, every ten seconds for a week."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0026_machine_samples"
down_revision = "0025_votes"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "machine_samples",
        sa.Column("node", sa.String(255), primary_key=True),
        sa.Column("at", INSTANT, primary_key=True),
        sa.Column("figures", JSON, nullable=False),
        sa.Column("counters", JSON, nullable=False),
        sa.Column("processes", JSON, nullable=False),
    )
    op.create_index("ix_machine_samples_at", "machine_samples", ["at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_index("ix_machine_samples_at", table_name="machine_samples")
    op.drop_table("machine_samples")
