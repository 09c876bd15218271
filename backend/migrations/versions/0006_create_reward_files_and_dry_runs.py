"""Create the tables of persons' own reward functions and of dry runs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006_rewards"
down_revision = "0005_exports"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "reward_files",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_index("ix_reward_files_created_at", "reward_files", ["created_at"])
    op.create_table(
        "reward_dry_runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("rewards", JSON, nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=False),
        sa.Column("columns", JSON, nullable=False),
        sa.Column("row_count", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("touched_at", INSTANT, nullable=True),
    )
    for column in ("state", "dataset_id", "created_at"):
        op.create_index(f"ix_reward_dry_runs_{column}", "reward_dry_runs", [column])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("reward_dry_runs")
    op.drop_table("reward_files")
