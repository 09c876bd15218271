"""Create the tables of credentials, jobs and what jobs report."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001_jobs"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create everything; SQLite keeps points sorted by their key (no row id)."""
    _create_credentials()
    _create_jobs()
    _create_attempts()
    _create_reports()
    _create_metrics()


def downgrade() -> None:
    """Drop everything, what refers to a table before the table."""
    for table in (
        "metric_rollups",
        "metric_points",
        "metric_series",
        "rollouts",
        "log_lines",
        "job_events",
        "checkpoints",
        "job_attempts",
        "job_tags",
        "jobs",
        "login_codes",
        "browser_sessions",
        "access_tokens",
    ):
        op.drop_table(table)


def _create_credentials() -> None:
    """Create the tables for hashes of tokens, login codes and sessions."""
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_index("ix_access_tokens_name", "access_tokens", ["name"])
    op.create_table(
        "browser_sessions",
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_table(
        "login_codes",
        sa.Column("code_hash", sa.String(), nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.Column("used_at", INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("code_hash"),
    )


def _create_jobs() -> None:
    """Create the tables for jobs, their tags and the order of the queue."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "queued",
                "launching",
                "running",
                "stopping",
                "stopped",
                "succeeded",
                "failed",
                "crashed",
                name="jobstate",
                native_enum=False,
                length=16,
            ),
            nullable=False,
        ),
        sa.Column("recipe", sa.String(), nullable=False),
        sa.Column("preset", sa.String(), nullable=True),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("validation_dataset_id", sa.String(), nullable=True),
        sa.Column("params", JSON, nullable=False),
        sa.Column("overrides", JSON, nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("cloned_from", sa.String(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("resume_from", sa.String(), nullable=True),
        sa.Column("resume_step", sa.BigInteger(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("queued_at", INSTANT, nullable=False),
        sa.Column("launched_at", INSTANT, nullable=True),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("stop_requested_at", INSTANT, nullable=True),
        sa.Column("phase", sa.String(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        sa.Column("metric_step", sa.BigInteger(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=True),
        sa.Column("first_step_at", INSTANT, nullable=True),
        sa.Column("last_step_at", INSTANT, nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("line_count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_jobs_dataset_id", "jobs", ["dataset_id"])
    op.create_index("ix_jobs_model_id", "jobs", ["model_id"])
    op.create_index("ix_jobs_newest", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_queue", "jobs", ["state", "priority", "queued_at"])
    op.create_index("ix_jobs_recipe", "jobs", ["recipe"])
    op.create_index("ix_jobs_validation_dataset_id", "jobs", ["validation_dataset_id"])
    op.create_table(
        "job_tags",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "tag"),
    )
    op.create_index("ix_job_tags_tag", "job_tags", ["tag"])


def _create_attempts() -> None:
    """Create the tables for the launches of a job and the checkpoints they left."""
    op.create_table(
        "job_attempts",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("heartbeat_at", INSTANT, nullable=True),
        sa.Column("next_sequence", sa.BigInteger(), nullable=False),
        sa.Column("resume_from", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("manifest", JSON, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "number"),
    )
    op.create_index("ix_job_attempts_token_hash", "job_attempts", ["token_hash"], unique=True)
    op.create_table(
        "checkpoints",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("hf_path", sa.String(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "step"),
    )


def _create_reports() -> None:
    """Create the tables for what runs report, in order."""
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "sequence"),
    )
    op.create_table(
        "log_lines",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("time", INSTANT, nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "line"),
    )
    op.create_table(
        "rollouts",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("response", sa.String(), nullable=False),
        sa.Column("ground_truth", sa.String(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reward_parts", JSON, nullable=False),
        sa.Column("response_tokens", sa.BigInteger(), nullable=False),
        sa.Column("advantage", sa.Float(), nullable=True),
        sa.Column("is_truncated", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_rollouts_step", "rollouts", ["job_id", "split", "step", "id"])


def _create_metrics() -> None:
    """Create the tables for metric points by series and step, and for their sums."""
    op.create_table(
        "metric_series",
        sa.Column("id", IDENTITY, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_id", "key", name="uq_metric_series_job_key"),
    )
    op.create_table(
        "metric_points",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("step", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["series_id"], ["metric_series.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("series_id", "step"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "metric_rollups",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bucket", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("min_step", sa.BigInteger(), nullable=True),
        sa.Column("min_value", sa.Float(precision=53), nullable=True),
        sa.Column("max_step", sa.BigInteger(), nullable=True),
        sa.Column("max_value", sa.Float(precision=53), nullable=True),
        sa.Column("odd_step", sa.BigInteger(), nullable=True),
        sa.Column("odd_value", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["series_id"], ["metric_series.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("series_id", "bucket"),
        sqlite_with_rowid=False,
    )
