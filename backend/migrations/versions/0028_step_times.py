"""Keep when steps were measured, and timelines of some of them."""

import sqlalchemy as sa
from alembic import op

revision = "0028_step_times"
down_revision = "0027_saved_views"
branch_labels = None
depends_on = None


def _create(name: str, *columns: sa.Column) -> None:
    op.create_table(
        name,
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        *columns,
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "step"),
    )


def upgrade() -> None:
    """Create the tables."""
    _create("job_step_times", sa.Column("at", sa.DateTime(timezone=True), nullable=False))
    _create("job_step_timelines", sa.Column("timeline", sa.JSON(), nullable=False))


def downgrade() -> None:
    """Drop them; metrics stay."""
    op.drop_table("job_step_timelines")
    op.drop_table("job_step_times")
