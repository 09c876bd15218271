"""Create the tables of evaluations, their scores, installed benchmarks and reports; jobs name theirs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010_evaluations"
down_revision = "0009_data_factory"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLES = (
    "due_evaluations",
    "evaluation_scores",
    "evaluations",
    "benchmark_installs",
    "reports",
    "evaluation_leftovers",
)


def upgrade() -> None:
    """Create them."""
    _create_evaluations()
    _create_scores()
    _create_due_evaluations()
    op.create_table(
        "benchmark_installs",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("state_reason", sa.String(2000), nullable=True),
        sa.Column("state_changed_at", INSTANT, nullable=False),
        sa.Column("revision", sa.String(120), nullable=True),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("rows", JSON, nullable=False),
        sa.Column("groups", JSON, nullable=False),
        sa.Column("installed_at", INSTANT, nullable=True),
    )
    op.create_index("ix_benchmark_installs_state", "benchmark_installs", ["state"])
    op.create_table(
        "reports",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("state_reason", sa.String(2000), nullable=True),
        sa.Column("state_changed_at", INSTANT, nullable=False),
        sa.Column("files", JSON, nullable=False),
        sa.Column("problems", JSON, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_index("ix_reports_state", "reports", ["state"])
    op.create_index("ix_reports_newest", "reports", ["created_at", "id"])
    op.create_table(
        "evaluation_leftovers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("requested_at", INSTANT, nullable=False),
    )
    op.add_column("jobs", sa.Column("evaluate", JSON, nullable=True))
    op.add_column("jobs", sa.Column("evaluation_id", sa.String(32), nullable=True))


def downgrade() -> None:
    """Drop them. The jobs of evaluations go too: an older release cannot run them."""
    op.execute("DELETE FROM jobs WHERE kind = 'evaluate'")
    op.drop_column("jobs", "evaluation_id")
    op.drop_column("jobs", "evaluate")
    for table in TABLES:
        op.drop_table(table)


def _create_evaluations() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(32), primary_key=True),
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
        sa.Column("displaced_at", INSTANT, nullable=True),
        sa.Column("results", sa.JSON(), nullable=True),
        sa.Column("manifest", sa.JSON(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_evaluations_newest", "evaluations", ["created_at", "id"])
    op.create_index("ix_evaluations_job_id", "evaluations", ["job_id"], unique=True)
    op.create_index("ix_evaluations_target_model_id", "evaluations", ["target_model_id"])
    op.create_index("ix_evaluations_checkpoint", "evaluations", ["target_job_id", "target_step"])


def _create_scores() -> None:
    op.create_table(
        "evaluation_scores",
        sa.Column("id", ROW_ID, primary_key=True),
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
        sa.Column("target_model_id", sa.String(32), nullable=True),
        sa.Column("target_job_id", sa.String(32), nullable=True),
        sa.Column("target_step", sa.BigInteger(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_evaluation_scores_evaluation_id", "evaluation_scores", ["evaluation_id"])
    op.create_index("ix_evaluation_scores_board", "evaluation_scores", ["label", "metric", "value"])
    op.create_index("ix_evaluation_scores_model", "evaluation_scores", ["target_model_id"])
    op.create_index("ix_evaluation_scores_checkpoint", "evaluation_scores", ["target_job_id", "target_step"])


def _create_due_evaluations() -> None:
    op.create_table(
        "due_evaluations",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("saved_at", INSTANT, nullable=False),
        sa.Column("is_final", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("evaluation_id", sa.String(32), nullable=True),
        sa.Column("problem", sa.String(2000), nullable=True),
        sa.Column("closed_at", INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("job_id", "step"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_due_evaluations_state", "due_evaluations", ["state"])
    op.create_index("ix_due_evaluations_evaluation_id", "due_evaluations", ["evaluation_id"])
