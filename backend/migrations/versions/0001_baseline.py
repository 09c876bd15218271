"""All tables of the first version; later changes are migrations of their own, which only add."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

#: The name of the last step to these tables before they became one file: databases that have it are complete.
revision = "0039_job_configurations"
down_revision = None
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
#: SQLite counts up integers alone.
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_index("ix_access_tokens_name", "access_tokens", ["name"], unique=False)
    op.create_table(
        "benchmark_installs",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("state_reason", sa.String(2000), nullable=True),
        sa.Column("state_changed_at", TIME, nullable=False),
        sa.Column("revision", sa.String(120), nullable=True),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("rows", JSON, nullable=False),
        sa.Column("groups", JSON, nullable=False),
        sa.Column("installed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("ix_benchmark_installs_state", "benchmark_installs", ["state"], unique=False)
    op.create_table(
        "browser_sessions",
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_table(
        "data_tasks",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=False),
        sa.Column("version_id", sa.String(64), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("progress", JSON, nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("made_version_id", sa.String(64), nullable=True),
        sa.Column("made_dataset_id", sa.String(32), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("touched_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_data_tasks_made_dataset_id", "data_tasks", ["made_dataset_id"], unique=False)
    op.create_index("ix_data_tasks_newest", "data_tasks", ["dataset_id", "created_at", "id"], unique=False)
    op.create_index("ix_data_tasks_queue", "data_tasks", ["state", "created_at"], unique=False)
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("task_id", sa.String(32), nullable=True),
        sa.Column("licences", JSON, nullable=False),
        sa.Column("source", JSON, nullable=False),
        sa.Column("head", sa.String(64), nullable=True),
        sa.Column("format", sa.String(32), nullable=True),
        sa.Column("format_reason", sa.String(500), nullable=True),
        sa.Column("format_columns", JSON, nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("splits", JSON, nullable=False),
        sa.Column("columns", JSON, nullable=False),
        sa.Column("warnings", JSON, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_datasets_created_at", "datasets", ["created_at"], unique=False)
    op.create_index("ix_datasets_state", "datasets", ["state"], unique=False)
    op.create_table(
        "environments",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
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
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("touched_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_environments_newest", "environments", ["created_at", "id"], unique=False)
    op.create_index("ix_environments_state", "environments", ["state"], unique=False)
    op.create_table(
        "evaluation_leftovers",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("requested_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "export_leftovers",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("requested_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "job_pipeline_outcomes",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("evaluation_id", sa.String(32), nullable=True),
        sa.Column("model_id", sa.String(32), nullable=True),
        sa.Column("pipeline_id", sa.String(32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint"),
    )
    op.create_table(
        "job_pipelines",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_job_pipelines_is_active", "job_pipelines", ["is_active"], unique=False)
    op.create_index("ix_job_pipelines_newest", "job_pipelines", ["created_at", "id"], unique=False)
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
        sa.Column("kind", sa.String(16), server_default="train", nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=True),
        sa.Column("validation_dataset_id", sa.String(), nullable=True),
        sa.Column("dataset_version", sa.String(64), nullable=True),
        sa.Column("dataset_split", sa.String(100), nullable=True),
        sa.Column("validation_version", sa.String(64), nullable=True),
        sa.Column("validation_split", sa.String(100), nullable=True),
        sa.Column("data_format", sa.String(32), nullable=True),
        sa.Column("data_columns", JSON, server_default="{}", nullable=False),
        sa.Column("validation_data_format", sa.String(32), nullable=True),
        sa.Column("validation_columns", JSON, server_default="{}", nullable=False),
        sa.Column("params", JSON, nullable=False),
        sa.Column("overrides", JSON, nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("device_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("cloned_from", sa.String(), nullable=True),
        sa.Column("sweep_id", sa.String(32), nullable=True),
        sa.Column("group", sa.String(200), nullable=True),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column("is_starred", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("export", JSON, nullable=True),
        sa.Column("export_as", JSON, nullable=True),
        sa.Column("evaluate", JSON, nullable=True),
        sa.Column("evaluation_id", sa.String(32), nullable=True),
        sa.Column("keep_best_by", JSON, nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("resume_from", sa.String(), nullable=True),
        sa.Column("resume_step", sa.BigInteger(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("queued_at", TIME, nullable=False),
        sa.Column("ordered_at", TIME, nullable=True),
        sa.Column("launched_at", TIME, nullable=True),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("stop_requested_at", TIME, nullable=True),
        sa.Column("phase", sa.String(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        sa.Column("metric_step", sa.BigInteger(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=True),
        sa.Column("first_step_at", TIME, nullable=True),
        sa.Column("last_step_at", TIME, nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("line_count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_jobs_dataset_id", "jobs", ["dataset_id"], unique=False)
    op.create_index("ix_jobs_group", "jobs", ["group"], unique=False)
    op.create_index("ix_jobs_model_id", "jobs", ["model_id"], unique=False)
    op.create_index("ix_jobs_newest", "jobs", ["created_at", "id"], unique=False)
    op.create_index("ix_jobs_queue", "jobs", ["state", "priority", "queued_at"], unique=False)
    op.create_index("ix_jobs_recipe", "jobs", ["recipe"], unique=False)
    op.create_index("ix_jobs_sweep_id", "jobs", ["sweep_id"], unique=False)
    op.create_index("ix_jobs_validation_dataset_id", "jobs", ["validation_dataset_id"], unique=False)
    op.create_table(
        "login_codes",
        sa.Column("code_hash", sa.String(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("code_hash"),
    )
    op.create_table(
        "login_failures",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("failed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_login_failures_address", "login_failures", ["address", "failed_at"], unique=False)
    op.create_index("ix_login_failures_failed_at", "login_failures", ["failed_at"], unique=False)
    op.create_table(
        "machine_samples",
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("figures", JSON, nullable=False),
        sa.Column("counters", JSON, nullable=False),
        sa.Column("processes", JSON, nullable=False),
        sa.PrimaryKeyConstraint("node", "at"),
    )
    op.create_index("ix_machine_samples_at", "machine_samples", ["at"], unique=False)
    op.create_table(
        "models",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("state_reason", sa.String(2000), nullable=True),
        sa.Column("state_changed_at", TIME, nullable=False),
        sa.Column("progress", JSON, nullable=True),
        sa.Column("source", JSON, nullable=False),
        sa.Column("lineage", JSON, nullable=False),
        sa.Column("parent_model_id", sa.String(32), nullable=True),
        sa.Column("source_job_id", sa.String(32), nullable=True),
        sa.Column("source_step", sa.BigInteger(), nullable=True),
        sa.Column("path", sa.String(1024), nullable=True),
        sa.Column("architecture", sa.String(120), nullable=True),
        sa.Column("parameter_count", sa.BigInteger(), nullable=True),
        sa.Column("dtype", sa.String(32), nullable=True),
        sa.Column("context_length", sa.BigInteger(), nullable=True),
        sa.Column("vocabulary_size", sa.BigInteger(), nullable=True),
        sa.Column("has_chat_template", sa.Boolean(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("sha256_kind", sa.String(16), nullable=True),
        sa.Column("warnings", JSON, nullable=False),
        sa.Column("revision", sa.String(120), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_models_created_at", "models", ["created_at"], unique=False)
    op.create_index("ix_models_parent", "models", ["parent_model_id", "created_at"], unique=False)
    op.create_index("ix_models_source", "models", ["source_job_id", "source_step"], unique=False)
    op.create_index("ix_models_state", "models", ["state"], unique=False)
    op.create_table(
        "named_models",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "openai_files",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("upload_id", sa.String(32), nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=False),
        sa.Column("filename", sa.String(255), nullable=False),
        sa.Column("purpose", sa.String(32), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_openai_files_newest", "openai_files", ["created_at", "id"], unique=False)
    op.create_table(
        "pipelines",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_pipelines_created_at", "pipelines", ["created_at"], unique=False)
    op.create_table(
        "purges",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("requested_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "reports",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("state_reason", sa.String(2000), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("state_changed_at", TIME, nullable=False),
        sa.Column("files", JSON, nullable=False),
        sa.Column("problems", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_reports_newest", "reports", ["created_at", "id"], unique=False)
    op.create_index("ix_reports_state", "reports", ["state"], unique=False)
    op.create_table(
        "reward_dry_runs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("rewards", JSON, nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=False),
        sa.Column("dataset_version", sa.String(64), nullable=True),
        sa.Column("dataset_split", sa.String(100), nullable=True),
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
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("touched_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_reward_dry_runs_created_at", "reward_dry_runs", ["created_at"], unique=False)
    op.create_index("ix_reward_dry_runs_dataset_id", "reward_dry_runs", ["dataset_id"], unique=False)
    op.create_index("ix_reward_dry_runs_state", "reward_dry_runs", ["state"], unique=False)
    op.create_table(
        "reward_files",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_reward_files_created_at", "reward_files", ["created_at"], unique=False)
    op.create_table(
        "sandbox_probes",
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("problem", sa.String(500), nullable=True),
        sa.Column("probed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("hostname"),
    )
    op.create_table(
        "saved_views",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("page", sa.String(16), nullable=False),
        sa.Column("scope", sa.String(64), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("query", sa.String(8000), nullable=False),
        sa.Column("created_by", sa.String(120), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("page", "scope", "name", name="uq_saved_views_name"),
    )
    op.create_table(
        "shared_conversations",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_by", sa.String(120), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_shared_conversations_expires_at", "shared_conversations", ["expires_at"], unique=False
    )
    op.create_index(
        "ix_shared_conversations_owner", "shared_conversations", ["created_by", "expires_at"], unique=False
    )
    op.create_table(
        "sweeps",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("recipe", sa.String(64), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("earlier_s", sa.Float(), nullable=False),
        sa.Column("first_index", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_sweeps_is_active", "sweeps", ["is_active"], unique=False)
    op.create_index("ix_sweeps_newest", "sweeps", ["created_at", "id"], unique=False)
    op.create_table(
        "transfers",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("model_name", sa.String(120), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("progress", JSON, nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("touched_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_transfers_model", "transfers", ["model_id", "created_at"], unique=False)
    op.create_index("ix_transfers_newest", "transfers", ["created_at", "id"], unique=False)
    op.create_index("ix_transfers_queue", "transfers", ["state", "created_at"], unique=False)
    op.create_table(
        "votes",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("voter", sa.String(120), nullable=False),
        sa.Column("model_a", sa.String(200), nullable=False),
        sa.Column("model_b", sa.String(200), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("is_blind", sa.Boolean(), nullable=False),
        sa.Column("messages", sa.JSON(), nullable=False),
        sa.Column("answer_a", sa.String(), nullable=False),
        sa.Column("answer_b", sa.String(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_votes_models", "votes", ["model_a", "model_b"], unique=False)
    op.create_index("ix_votes_newest", "votes", ["created_at", "id"], unique=False)
    op.create_table(
        "workflow_files",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("function", sa.String(120), nullable=False),
        sa.Column("files", JSON, nullable=True),
        sa.Column("requirements", JSON, nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("installed", JSON, nullable=True),
        sa.Column("touched_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_workflow_files_created_at", "workflow_files", ["created_at"], unique=False)
    op.create_table(
        "checkpoints",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("hf_path", sa.String(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("is_kept", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("pruned_at", TIME, nullable=True),
        sa.Column("removed_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "step"),
    )
    op.create_table(
        "dataset_refs",
        sa.Column("dataset_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("version_id", sa.String(64), nullable=False),
        sa.Column("moved_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset_id", "name"),
    )
    op.create_table(
        "dataset_versions",
        sa.Column("dataset_id", sa.String(length=32), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("parents", JSON, nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("tree", sa.String(64), nullable=False),
        sa.Column("splits", JSON, nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("task_id", sa.String(32), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset_id", "id"),
    )
    op.create_index("ix_dataset_versions_newest", "dataset_versions", ["dataset_id", "number"], unique=False)
    op.create_index("ix_dataset_versions_task_id", "dataset_versions", ["task_id"], unique=False)
    op.create_table(
        "due_evaluations",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("saved_at", TIME, nullable=False),
        sa.Column("is_final", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("evaluation_id", sa.String(32), nullable=True),
        sa.Column("problem", sa.String(2000), nullable=True),
        sa.Column("closed_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "step"),
    )
    op.create_index("ix_due_evaluations_evaluation_id", "due_evaluations", ["evaluation_id"], unique=False)
    op.create_index("ix_due_evaluations_state", "due_evaluations", ["state"], unique=False)
    op.create_table(
        "endpoints",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("engine_id", sa.String(32), nullable=True),
        sa.Column("load_id", sa.String(32), nullable=True),
        sa.Column("asked_attempt", sa.Integer(), nullable=True),
        sa.Column("asked_at", TIME, nullable=True),
        sa.Column("asked_with", sa.String(64), nullable=True),
        sa.Column("refusal", sa.String(500), nullable=True),
        sa.Column("refused_at", TIME, nullable=True),
        sa.Column("refused_by", sa.String(64), nullable=True),
        sa.Column("unloaded_at", TIME, nullable=True),
        sa.Column("unloaded_for", sa.String(16), nullable=True),
        sa.Column("max_lora_rank", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("target_model_id", sa.String(32), nullable=True),
        sa.Column("target_job_id", sa.String(32), nullable=True),
        sa.Column("target_step", sa.BigInteger(), nullable=True),
        sa.Column("idle_timeout_s", sa.Float(), nullable=True),
        sa.Column("max_model_len", sa.BigInteger(), nullable=True),
        sa.Column("is_preemptible", sa.Boolean(), nullable=False),
        sa.Column("preempted_by", sa.String(32), nullable=True),
        sa.Column("ready_attempt", sa.Integer(), nullable=True),
        sa.Column("host", sa.String(64), nullable=True),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("context_length", sa.BigInteger(), nullable=True),
        sa.Column("tool_problem", sa.String(32), nullable=True),
        sa.Column("ready_at", TIME, nullable=True),
        sa.Column("load", sa.JSON(), nullable=True),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_endpoints_checkpoint", "endpoints", ["target_job_id", "target_step"], unique=True)
    op.create_index("ix_endpoints_engine_id", "endpoints", ["engine_id"], unique=False)
    op.create_index("ix_endpoints_job_id", "endpoints", ["job_id"], unique=False)
    op.create_index("ix_endpoints_model", "endpoints", ["target_model_id"], unique=True)
    op.create_index("ix_endpoints_newest", "endpoints", ["created_at", "id"], unique=False)
    op.create_table(
        "environment_calls",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("environment_id", sa.String(32), nullable=False),
        sa.Column("tool", sa.String(200), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("reason", sa.String(2000), nullable=True),
        sa.Column("cause", sa.String(64), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("touched_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_environment_calls_newest",
        "environment_calls",
        ["environment_id", "created_at", "id"],
        unique=False,
    )
    op.create_index("ix_environment_calls_state", "environment_calls", ["state"], unique=False)
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("trigger", sa.String(16), nullable=False),
        sa.Column("target_kind", sa.String(16), nullable=False),
        sa.Column("target_model_id", sa.String(32), nullable=True),
        sa.Column("target_job_id", sa.String(32), nullable=True),
        sa.Column("target_step", sa.BigInteger(), nullable=True),
        sa.Column("target_name", sa.String(200), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("benchmark_names", JSON, nullable=False),
        sa.Column("dataset_names", JSON, server_default="{}", nullable=False),
        sa.Column("displaced_at", TIME, nullable=True),
        sa.Column("results", sa.JSON(), nullable=True),
        sa.Column("manifest", sa.JSON(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("recorded_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_evaluations_checkpoint", "evaluations", ["target_job_id", "target_step"], unique=False
    )
    op.create_index("ix_evaluations_job_id", "evaluations", ["job_id"], unique=True)
    op.create_index("ix_evaluations_newest", "evaluations", ["created_at", "id"], unique=False)
    op.create_index("ix_evaluations_target_model_id", "evaluations", ["target_model_id"], unique=False)
    op.create_table(
        "fine_tuning_jobs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("tuned_name", sa.String(120), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("hyperparameters", JSON, nullable=False),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("cancelled_at", TIME, nullable=True),
        sa.Column("paused_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_fine_tuning_jobs_job_id", "fine_tuning_jobs", ["job_id"], unique=False)
    op.create_index("ix_fine_tuning_jobs_newest", "fine_tuning_jobs", ["created_at", "id"], unique=False)
    op.create_table(
        "job_alarms",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=True),
        sa.Column("threshold", sa.Float(precision=53), nullable=True),
        sa.Column("example_id", sa.BigInteger(), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("raised_at", TIME, nullable=False),
        sa.Column("cleared_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "code"),
    )
    op.create_index("ix_job_alarms_active", "job_alarms", ["is_active", "job_id"], unique=False)
    op.create_table(
        "job_attempts",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("heartbeat_at", TIME, nullable=True),
        sa.Column("next_sequence", sa.BigInteger(), nullable=False),
        sa.Column("resume_from", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("manifest", JSON, nullable=True),
        sa.Column("watch", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "number"),
    )
    op.create_index("ix_job_attempts_token_hash", "job_attempts", ["token_hash"], unique=True)
    op.create_table(
        "job_configurations",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "sequence"),
    )
    op.create_table(
        "job_pipeline_stages",
        sa.Column("pipeline_id", sa.String(32), nullable=False),
        sa.Column("stage_id", sa.String(64), nullable=False),
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
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["pipeline_id"], ["job_pipelines.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pipeline_id", "stage_id"),
    )
    op.create_index("ix_job_pipeline_stages_job_id", "job_pipeline_stages", ["job_id"], unique=False)
    op.create_table(
        "job_reports",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("url", sa.String(2000), nullable=True),
        sa.Column("sent_step", sa.BigInteger(), nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("problem", sa.String(500), nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_index("ix_job_reports_due", "job_reports", ["done_at", "due_at"], unique=False)
    op.create_table(
        "job_step_timelines",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("timeline", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "step"),
    )
    op.create_table(
        "job_step_times",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "step"),
    )
    op.create_table(
        "job_tags",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "tag"),
    )
    op.create_index("ix_job_tags_tag", "job_tags", ["tag"], unique=False)
    op.create_table(
        "log_lines",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("time", TIME, nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "line"),
    )
    op.create_table(
        "metric_series",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_id", "key", name="uq_metric_series_job_key"),
    )
    op.create_table(
        "model_aliases",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("moved_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["name"], ["named_models.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("name", "alias"),
    )
    op.create_table(
        "model_promotions",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("from_version", sa.Integer(), nullable=True),
        sa.Column("to_version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("note", sa.String(2000), nullable=False),
        sa.Column("gate", sa.JSON(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["name"], ["named_models.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_model_promotions_newest", "model_promotions", ["name", "id"], unique=False)
    op.create_table(
        "model_versions",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("model_name", sa.String(120), nullable=False),
        sa.Column("note", sa.String(2000), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["name"], ["named_models.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("name", "number"),
    )
    op.create_index("ix_model_versions_model_id", "model_versions", ["model_id"], unique=False)
    op.create_table(
        "pipeline_versions",
        sa.Column("pipeline_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("message", sa.String(2000), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pipeline_id", "number"),
    )
    op.create_table(
        "rollout_groups",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("prompt_key", sa.String(64), nullable=False),
        sa.Column("excerpt", sa.String(), nullable=False),
        sa.Column("messages", sa.JSON(), nullable=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("mean", sa.Float(), nullable=True),
        sa.Column("lowest", sa.Float(), nullable=True),
        sa.Column("highest", sa.Float(), nullable=True),
        sa.Column("correct", sa.Integer(), nullable=True),
        sa.Column("is_uniform", sa.Boolean(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "split", "step", "group"),
    )
    op.create_index(
        "ix_rollout_groups_prompt", "rollout_groups", ["job_id", "split", "prompt_key", "step"], unique=False
    )
    op.create_table(
        "rollouts",
        sa.Column("id", ROW_ID, nullable=False),
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
        sa.Column("trajectory", sa.JSON(), nullable=True),
        sa.Column("stop_reason", sa.String(64), nullable=True),
        sa.Column("turn_count", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_rollouts_step", "rollouts", ["job_id", "split", "step", "id"], unique=False)
    op.create_table(
        "sweep_runs",
        sa.Column("sweep_id", sa.String(32), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.Column("is_over", sa.Boolean(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("value_step", sa.BigInteger(), nullable=True),
        sa.Column("rungs", sa.JSON(), nullable=False),
        sa.Column("pruned_at", TIME, nullable=True),
        sa.Column("is_paused", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.String(2000), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sweep_id", "index"),
    )
    op.create_index("ix_sweep_runs_job_id", "sweep_runs", ["job_id"], unique=False)
    op.create_table(
        "evaluation_scores",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("evaluation_id", sa.String(32), nullable=False),
        sa.Column("label", sa.String(64), nullable=False),
        sa.Column("benchmark", sa.String(64), nullable=False),
        sa.Column("metric", sa.String(200), nullable=False),
        sa.Column("is_headline", sa.Boolean(), nullable=False),
        sa.Column("group_kind", sa.String(200), nullable=True),
        sa.Column("group_name", sa.String(500), nullable=True),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("stderr", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("configuration", sa.String(64), nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=True),
        sa.Column("target_model_id", sa.String(32), nullable=True),
        sa.Column("target_job_id", sa.String(32), nullable=True),
        sa.Column("target_step", sa.BigInteger(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_evaluation_scores_board", "evaluation_scores", ["label", "metric", "value"], unique=False
    )
    op.create_index(
        "ix_evaluation_scores_checkpoint", "evaluation_scores", ["target_job_id", "target_step"], unique=False
    )
    op.create_index(
        "ix_evaluation_scores_evaluation_id", "evaluation_scores", ["evaluation_id"], unique=False
    )
    op.create_index("ix_evaluation_scores_model", "evaluation_scores", ["target_model_id"], unique=False)
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
    op.create_table(
        "rollout_tokens",
        sa.Column("rollout_id", ROW_ID, autoincrement=False, nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("trace", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["rollout_id"], ["rollouts.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("rollout_id"),
    )
    op.create_index("ix_rollout_tokens_step", "rollout_tokens", ["job_id", "split", "step"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("rollout_tokens")
    op.drop_table("metric_rollups")
    op.drop_table("metric_points")
    op.drop_table("evaluation_scores")
    op.drop_table("sweep_runs")
    op.drop_table("rollouts")
    op.drop_table("rollout_groups")
    op.drop_table("pipeline_versions")
    op.drop_table("model_versions")
    op.drop_table("model_promotions")
    op.drop_table("model_aliases")
    op.drop_table("metric_series")
    op.drop_table("log_lines")
    op.drop_table("job_tags")
    op.drop_table("job_step_times")
    op.drop_table("job_step_timelines")
    op.drop_table("job_reports")
    op.drop_table("job_pipeline_stages")
    op.drop_table("job_events")
    op.drop_table("job_configurations")
    op.drop_table("job_attempts")
    op.drop_table("job_alarms")
    op.drop_table("fine_tuning_jobs")
    op.drop_table("evaluations")
    op.drop_table("environment_calls")
    op.drop_table("endpoints")
    op.drop_table("due_evaluations")
    op.drop_table("dataset_versions")
    op.drop_table("dataset_refs")
    op.drop_table("checkpoints")
    op.drop_table("workflow_files")
    op.drop_table("votes")
    op.drop_table("transfers")
    op.drop_table("sweeps")
    op.drop_table("shared_conversations")
    op.drop_table("saved_views")
    op.drop_table("sandbox_probes")
    op.drop_table("reward_files")
    op.drop_table("reward_dry_runs")
    op.drop_table("reports")
    op.drop_table("purges")
    op.drop_table("pipelines")
    op.drop_table("openai_files")
    op.drop_table("named_models")
    op.drop_table("models")
    op.drop_table("machine_samples")
    op.drop_table("login_failures")
    op.drop_table("login_codes")
    op.drop_table("jobs")
    op.drop_table("job_pipelines")
    op.drop_table("job_pipeline_outcomes")
    op.drop_table("export_leftovers")
    op.drop_table("evaluation_leftovers")
    op.drop_table("environments")
    op.drop_table("datasets")
    op.drop_table("data_tasks")
    op.drop_table("browser_sessions")
    op.drop_table("benchmark_installs")
    op.drop_table("access_tokens")
