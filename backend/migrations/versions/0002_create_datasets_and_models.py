"""Create the tables of datasets and models."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002_datasets_models"
down_revision = "0001_jobs"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create both."""
    _create_datasets()
    _create_models()


def downgrade() -> None:
    """Drop both."""
    op.drop_table("models")
    op.drop_table("datasets")


def _create_datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("path", sa.String(512), nullable=False),
        sa.Column("format", sa.String(32), nullable=False),
        sa.Column("format_reason", sa.String(500), nullable=False),
        sa.Column("format_columns", JSON, nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("columns", JSON, nullable=False),
        sa.Column("warnings", JSON, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("source_filename", sa.String(255), nullable=False),
        sa.Column("source_kind", sa.String(16), nullable=False),
        sa.Column("source_encoding", sa.String(16), nullable=True),
        sa.Column("source_size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("source_sha256", sa.String(64), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_datasets_created_at", "datasets", ["created_at"])


def _create_models() -> None:
    op.create_table(
        "models",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("state_reason", sa.String(2000), nullable=True),
        sa.Column("state_changed_at", INSTANT, nullable=False),
        sa.Column("source", JSON, nullable=False),
        sa.Column("lineage", JSON, nullable=False),
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
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_models_created_at", "models", ["created_at"])
    op.create_index("ix_models_state", "models", ["state"])
