"""Datasets get versions; data tasks and saved pipelines; jobs name the version and split that they read."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009_data_factory"
down_revision = "0008_lineage_and_records"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")

#: Said of the rows by the file that they lay in, which versions replace.
_OLD_COLUMNS = {
    "path": sa.String(512),
    "sha256": sa.String(64),
    "source_filename": sa.String(255),
    "source_kind": sa.String(16),
    "source_size_bytes": sa.BigInteger(),
    "source_sha256": sa.String(64),
}


def upgrade() -> None:
    """Create and change them. A worker imports the file of every dataset of before as its first version."""
    _create_tasks()
    _create_versions()
    _create_pipelines()
    for table, names in (
        ("jobs", ("dataset", "validation")),
        ("reward_dry_runs", ("dataset",)),
    ):
        for name in names:
            op.add_column(table, sa.Column(f"{name}_version", sa.String(64), nullable=True))
            op.add_column(table, sa.Column(f"{name}_split", sa.String(100), nullable=True))
    old = _read_datasets()
    with op.batch_alter_table("datasets") as batch:
        batch.add_column(sa.Column("state", sa.String(16), nullable=False, server_default="creating"))
        batch.add_column(sa.Column("task_id", sa.String(32), nullable=True))
        batch.add_column(sa.Column("source", JSON, nullable=False, server_default="{}"))
        batch.add_column(sa.Column("head", sa.String(64), nullable=True))
        batch.add_column(sa.Column("splits", JSON, nullable=False, server_default="{}"))
        batch.add_column(sa.Column("updated_at", INSTANT, nullable=True))
        batch.alter_column("format", existing_type=sa.String(32), nullable=True)
        batch.alter_column("format_reason", existing_type=sa.String(500), nullable=True)
        for name in (*_OLD_COLUMNS, "source_encoding"):
            batch.drop_column(name)
    op.execute("UPDATE datasets SET updated_at = created_at")
    with op.batch_alter_table("datasets") as batch:
        batch.alter_column("updated_at", existing_type=INSTANT, nullable=False)
        batch.create_index("ix_datasets_state", ["state"])
    _queue_imports(old)


def downgrade() -> None:
    """Drop them. The rows stay in the store of versions, where an older release does not look.

    A dataset whose file has not been imported yet, and was not removed therefore, has its rows again.
    """
    new = _read_sources()
    with op.batch_alter_table("datasets") as batch:
        batch.drop_index("ix_datasets_state")
        for name in ("state", "task_id", "source", "head", "splits", "updated_at"):
            batch.drop_column(name)
        for name, kind in _OLD_COLUMNS.items():
            default = "0" if isinstance(kind, sa.BigInteger) else ""
            batch.add_column(sa.Column(name, kind, nullable=False, server_default=default))
        batch.add_column(sa.Column("source_encoding", sa.String(16), nullable=True))
    _restore_files(new)
    for table, names in (("reward_dry_runs", ("dataset",)), ("jobs", ("dataset", "validation"))):
        for name in names:
            op.drop_column(table, f"{name}_split")
            op.drop_column(table, f"{name}_version")
    for table in ("pipeline_versions", "pipelines", "dataset_refs", "dataset_versions", "data_tasks"):
        op.drop_table(table)


def _create_tasks() -> None:
    op.create_table(
        "data_tasks",
        sa.Column("id", sa.String(32), primary_key=True),
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
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("touched_at", INSTANT, nullable=True),
    )
    op.create_index("ix_data_tasks_newest", "data_tasks", ["dataset_id", "created_at", "id"])
    op.create_index("ix_data_tasks_queue", "data_tasks", ["state", "created_at"])
    op.create_index("ix_data_tasks_made_dataset_id", "data_tasks", ["made_dataset_id"])


def _create_versions() -> None:
    op.create_table(
        "dataset_versions",
        sa.Column("dataset_id", sa.String(32), nullable=False),
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
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "id"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="CASCADE"),
    )
    op.create_index("ix_dataset_versions_newest", "dataset_versions", ["dataset_id", "number"])
    op.create_index("ix_dataset_versions_task_id", "dataset_versions", ["task_id"])
    op.create_table(
        "dataset_refs",
        sa.Column("dataset_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("version_id", sa.String(64), nullable=False),
        sa.Column("moved_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "name"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="CASCADE"),
    )


def _create_pipelines() -> None:
    op.create_table(
        "pipelines",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
    op.create_index("ix_pipelines_created_at", "pipelines", ["created_at"])
    op.create_table(
        "pipeline_versions",
        sa.Column("pipeline_id", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("message", sa.String(2000), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "number"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
    )


def _read_datasets() -> list[sa.Row[tuple[str, ...]]]:
    columns = "id, path, source_filename, source_size_bytes, source_sha256"
    return list(op.get_bind().execute(sa.text(f"SELECT {columns} FROM datasets")))  # noqa: S608 - constants


def _read_sources() -> list[sa.Row[tuple[str, dict[str, Any]]]]:
    datasets = sa.table("datasets", sa.column("id", sa.String), sa.column("source", JSON))
    return list(op.get_bind().execute(sa.select(datasets.c.id, datasets.c.source)))


def _restore_files(new: list[sa.Row[tuple[str, dict[str, Any]]]]) -> None:
    """Write back the columns that the upgrade read: every dataset had its file at one place."""
    names = ("path", "source_filename", "source_size_bytes", "source_sha256")
    datasets = sa.table("datasets", sa.column("id"), *(sa.column(name) for name in names))
    for dataset_id, source in new:
        told = {
            "path": f"datasets/{dataset_id}/data.parquet",
            "source_filename": str(source.get("name") or "")[:255],
            "source_size_bytes": source.get("size_bytes") or 0,
            "source_sha256": source.get("sha256") or "",
        }
        op.execute(datasets.update().where(datasets.c.id == dataset_id).values(**told))


def _queue_imports(old: list[sa.Row[tuple[str, ...]]]) -> None:
    now = datetime.now(UTC)
    tasks = sa.table(
        "data_tasks",
        *(sa.column(name) for name in ("id", "kind", "state", "dataset_id", "attempt")),
        sa.column("request", sa.JSON()),
        sa.column("progress", JSON),
        sa.column("created_at", INSTANT),
    )
    datasets = sa.table("datasets", sa.column("id"), sa.column("task_id"), sa.column("source", JSON))
    for row in old:
        task_id = f"dtk_{row.id.removeprefix('ds_')}"
        source = {"kind": "path", "path": row.path}
        op.execute(
            tasks.insert().values(
                id=task_id,
                kind="import",
                state="queued",
                dataset_id=row.id,
                attempt=0,
                request={"kind": "import", "source": source},
                progress={},
                created_at=now,
            )
        )
        origin = {
            "kind": "upload",
            "name": row.source_filename,
            "size_bytes": row.source_size_bytes,
            "sha256": row.source_sha256,
        }
        op.execute(datasets.update().where(datasets.c.id == row.id).values(task_id=task_id, source=origin))
