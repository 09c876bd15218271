"""Rollouts hold trajectories; create the tables of environments, workflow files and pipelines of jobs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011_agents"
down_revision = "0010_evaluations"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TABLES = (
    "job_pipeline_outcomes",
    "job_pipeline_stages",
    "job_pipelines",
    "workflow_files",
    "environment_calls",
    "environments",
)


def upgrade() -> None:
    """Create them."""
    op.add_column("rollouts", sa.Column("trajectory", sa.JSON(), nullable=True))
    op.add_column("rollouts", sa.Column("stop_reason", sa.String(64), nullable=True))
    op.add_column("rollouts", sa.Column("turn_count", sa.Integer(), nullable=True))
    _create_environments()
    op.create_table(
        "workflow_files",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("function", sa.String(120), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_index("ix_workflow_files_created_at", "workflow_files", ["created_at"])
    _create_job_pipelines()


def downgrade() -> None:
    """Drop them; jobs, models and datasets that they led to stay."""
    for table in TABLES:
        op.drop_table(table)
    for column in ("turn_count", "stop_reason", "trajectory"):
        op.drop_column("rollouts", column)


def _create_environments() -> None:
    op.create_table(
        "environments",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("parameters", JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=True),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("dataset_ids", JSON, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("touched_at", INSTANT, nullable=True),
    )
    op.create_index("ix_environments_newest", "environments", ["created_at", "id"])
    op.create_index("ix_environments_state", "environments", ["state"])
    op.create_table(
        "environment_calls",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("environment_id", sa.String(32), nullable=False),
        sa.Column("tool", sa.String(200), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("touched_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
    )
    op.create_index(
        "ix_environment_calls_newest", "environment_calls", ["environment_id", "created_at", "id"]
    )
    op.create_index("ix_environment_calls_state", "environment_calls", ["state"])


def _create_job_pipelines() -> None:
    op.create_table(
        "job_pipelines",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
    )
    op.create_index("ix_job_pipelines_newest", "job_pipelines", ["created_at", "id"])
    op.create_index("ix_job_pipelines_is_active", "job_pipelines", ["is_active"])
    op.create_table(
        "job_pipeline_stages",
        sa.Column("pipeline_id", sa.String(32), primary_key=True),
        sa.Column("stage_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_forced", sa.Boolean(), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=True),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.Column("evaluation_id", sa.String(32), nullable=True),
        sa.Column("model_id", sa.String(32), nullable=True),
        sa.Column("reused_from", sa.String(32), nullable=True),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(["pipeline_id"], ["job_pipelines.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_job_pipeline_stages_job_id", "job_pipeline_stages", ["job_id"])
    op.create_table(
        "job_pipeline_outcomes",
        sa.Column("fingerprint", sa.String(64), primary_key=True),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("evaluation_id", sa.String(32), nullable=True),
        sa.Column("model_id", sa.String(32), nullable=True),
        sa.Column("pipeline_id", sa.String(32), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
    )
