"""Keep what pages show under names."""

import sqlalchemy as sa
from alembic import op

revision = "0027_saved_views"
down_revision = "0026_machine_samples"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "saved_views",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("page", sa.String(16), nullable=False),
        sa.Column("scope", sa.String(64), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("query", sa.String(8000), nullable=False),
        sa.Column("created_by", sa.String(120), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.UniqueConstraint("page", "scope", "name", name="uq_saved_views_name"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("saved_views")
