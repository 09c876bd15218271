"""Create the tables of sweeps, and let a job belong to one and to a group."""

import sqlalchemy as sa
from alembic import op

revision = "0019_sweeps"
down_revision = "0018_fine_tuning_and_registry"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "sweeps",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("recipe", sa.String(64), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("earlier_s", sa.Float(), nullable=False),
        sa.Column("first_index", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT, nullable=True),
    )
    op.create_index("ix_sweeps_newest", "sweeps", ["created_at", "id"])
    op.create_index("ix_sweeps_is_active", "sweeps", ["is_active"])
    op.create_table(
        "sweep_runs",
        sa.Column("sweep_id", sa.String(32), primary_key=True),
        sa.Column("index", sa.Integer(), primary_key=True),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.Column("is_over", sa.Boolean(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("value_step", sa.BigInteger(), nullable=True),
        sa.Column("rungs", sa.JSON(), nullable=False),
        sa.Column("pruned_at", INSTANT, nullable=True),
        sa.Column("is_paused", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.String(2000), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_sweep_runs_job_id", "sweep_runs", ["job_id"])
    op.add_column("jobs", sa.Column("sweep_id", sa.String(32), nullable=True))
    op.add_column("jobs", sa.Column("group", sa.String(200), nullable=True))
    op.create_index("ix_jobs_sweep_id", "jobs", ["sweep_id"])
    op.create_index("ix_jobs_group", "jobs", ["group"])


def downgrade() -> None:
    """Drop them; the jobs stay."""
    op.drop_index("ix_jobs_group", "jobs")
    op.drop_index("ix_jobs_sweep_id", "jobs")
    op.drop_column("jobs", "group")
    op.drop_column("jobs", "sweep_id")
    op.drop_table("sweep_runs")
    op.drop_table("sweeps")
