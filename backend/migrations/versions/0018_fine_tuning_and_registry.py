"""Create the tables of files and fine-tuning jobs that clients of OpenAI's know, and of named models."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018_fine_tuning_and_registry"
down_revision = "0017_endpoints"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "openai_files",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("upload_id", sa.String(32), nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=False),
        sa.Column("filename", sa.String(255), nullable=False),
        sa.Column("purpose", sa.String(32), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_index("ix_openai_files_newest", "openai_files", ["created_at", "id"])
    op.create_table(
        "fine_tuning_jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("tuned_name", sa.String(120), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("hyperparameters", DOCUMENT, nullable=False),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("cancelled_at", INSTANT, nullable=True),
        sa.Column("paused_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_fine_tuning_jobs_newest", "fine_tuning_jobs", ["created_at", "id"])
    op.create_index("ix_fine_tuning_jobs_job_id", "fine_tuning_jobs", ["job_id"])
    _create_registry()


def _create_registry() -> None:
    op.create_table(
        "named_models",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_table(
        "model_versions",
        sa.Column("name", sa.String(64), _of_name(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("model_name", sa.String(120), nullable=False),
        sa.Column("note", sa.String(2000), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_index("ix_model_versions_model_id", "model_versions", ["model_id"])
    op.create_table(
        "model_aliases",
        sa.Column("name", sa.String(64), _of_name(), primary_key=True),
        sa.Column("alias", sa.String(64), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("moved_at", INSTANT, nullable=False),
    )
    op.create_table(
        "model_promotions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("name", sa.String(64), _of_name(), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("from_version", sa.Integer(), nullable=True),
        sa.Column("to_version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("note", sa.String(2000), nullable=False),
        sa.Column("gate", sa.JSON(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
    )
    op.create_index("ix_model_promotions_newest", "model_promotions", ["name", "id"])


def _of_name() -> sa.ForeignKey:
    return sa.ForeignKey("named_models.name", ondelete="CASCADE")


def downgrade() -> None:
    """Drop them; the jobs, datasets and models stay."""
    for table in ("model_promotions", "model_aliases", "model_versions", "named_models"):
        op.drop_table(table)
    op.drop_table("fine_tuning_jobs")
    op.drop_table("openai_files")
