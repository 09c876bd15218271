"""Let a job export a checkpoint instead of training, and let checkpoints be kept or removed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005_exports"
down_revision = "0004_job_alarms"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("kind", sa.String(16), nullable=False, server_default="train"))
    for name in ("export", "export_as", "keep_best_by"):
        op.add_column("jobs", sa.Column(name, JSON, nullable=True))
    _set_dataset_nullable(True)
    op.add_column(
        "checkpoints", sa.Column("is_kept", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("checkpoints", sa.Column("pruned_at", INSTANT, nullable=True))
    op.add_column("checkpoints", sa.Column("removed_at", INSTANT, nullable=True))


def downgrade() -> None:
    """Drop the columns; jobs that trained on no dataset go with them."""
    for name in ("removed_at", "pruned_at", "is_kept"):
        op.drop_column("checkpoints", name)
    op.execute("DELETE FROM jobs WHERE dataset_id IS NULL")
    _set_dataset_nullable(False)
    for name in ("keep_best_by", "export_as", "export", "kind"):
        op.drop_column("jobs", name)


def _set_dataset_nullable(is_nullable: bool) -> None:
    """Change whether a job needs a dataset.

    SQLite cannot alter a column, and making the table anew would delete, by cascade, all that
    refers to it: there a new column takes the old one's values, name and index.
    """
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("jobs", "dataset_id", existing_type=sa.String(), nullable=is_nullable)
        return
    default = None if is_nullable else ""
    op.add_column(
        "jobs", sa.Column("dataset_id_new", sa.String(), nullable=is_nullable, server_default=default)
    )
    op.execute("UPDATE jobs SET dataset_id_new = dataset_id")
    op.drop_index("ix_jobs_dataset_id", table_name="jobs")
    op.drop_column("jobs", "dataset_id")
    op.execute("ALTER TABLE jobs RENAME COLUMN dataset_id_new TO dataset_id")
    op.create_index("ix_jobs_dataset_id", "jobs", ["dataset_id"])
