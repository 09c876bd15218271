"""Datasets from before there were versions: nothing is lost on the way up, and the way down is there."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from alembic import command
from sqlalchemy import Connection, text
from sqlmodel import select
from trellis_api.core.database import Database
from trellis_api.core.migrations import check, make_config
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset, DatasetRef, DatasetVersion
from trellis_api.datasets.view import view
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.datasets import sums

BEFORE = "0008_lineage_and_records"
OLD: dict[str, Any] = {
    "name": "sums", "description": "of before", "format": "prompt-answer",
    "format_reason": "question and answer",
    "format_columns": '{"prompt": "question", "answer": "answer"}', "row_count": 40,
    "columns": '[{"name": "question", "type": "text"}, {"name": "answer", "type": "text"}]',
    "warnings": "[]", "size_bytes": 9, "sha256": "1" * 64, "source_filename": "sums.jsonl",
    "source_kind": "jsonl", "source_size_bytes": 77, "source_sha256": "2" * 64, "created_at": "2026-01-01",
}  # fmt: skip


def insert(connection: Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)


def migrate_old(database: Database, *ids: str) -> None:
    """Datasets as release 8 left them, brought up to date."""
    with database.engine.begin() as connection:
        command.upgrade(make_config(connection), BEFORE)
        for dataset_id in ids:
            path = f"datasets/{dataset_id}/data.parquet"
            insert(
                connection, "datasets", {**OLD, "id": dataset_id, "name": f"sums {dataset_id}", "path": path}
            )
        command.upgrade(make_config(connection), "head")
        check(connection)


def test_each_dataset_waits_for_the_import_of_its_file(unmigrated: Database) -> None:
    migrate_old(unmigrated, "ds_aaaaaaaaaaaa", "ds_bbbbbbbbbbbb")

    with unmigrated.read() as session:
        datasets = session.exec(select(Dataset).order_by(Dataset.id)).all()
        assert [row.id for row in datasets] == ["ds_aaaaaaaaaaaa", "ds_bbbbbbbbbbbb"]
        for row in datasets:
            assert (row.state, row.head, row.splits) == ("creating", None, {})
            assert (row.format, row.row_count, row.description) == ("prompt-answer", 40, "of before")
            assert row.source == {
                "kind": "upload", "name": "sums.jsonl", "size_bytes": 77, "sha256": "2" * 64,
            }  # fmt: skip
            assert row.updated_at == row.created_at
        tasks = session.connection().execute(
            text("SELECT id, state, dataset_id, attempt FROM data_tasks ORDER BY id")
        )
        assert [tuple(task) for task in tasks] == [
            ("dtk_aaaaaaaaaaaa", "queued", "ds_aaaaaaaaaaaa", 0),
            ("dtk_bbbbbbbbbbbb", "queued", "ds_bbbbbbbbbbbb", 0),
        ]


def test_the_rows_of_before_become_the_first_version(unmigrated: Database, tmp_path: Any) -> None:
    folder = tmp_path / "datasets" / "ds_aaaaaaaaaaaa"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(sums(40)), folder / "data.parquet")
    settings = Settings(data_root=tmp_path, database_url=unmigrated.url.render_as_string(hide_password=False))
    migrate_old(unmigrated, "ds_aaaaaaaaaaaa")

    finish_data_tasks(settings, unmigrated)

    with unmigrated.read() as session:
        (version,) = session.exec(select(DatasetVersion)).all()
        (ref,) = session.exec(select(DatasetRef)).all()
        assert (version.number, version.splits, version.origin) == (1, {"train": 40}, "import")
        assert (ref.name, ref.kind, ref.version_id) == ("main", "branch", version.id)
        found = view(session, settings, dataset_id="ds_aaaaaaaaaaaa")
    rows = [row for path in found.paths for row in pq.read_table(path).to_pylist()]
    assert sorted(row["question"] for row in rows) == sorted(row["question"] for row in sums(40))
    assert (found.format, found.format_columns) == (
        "prompt-answer",
        {"prompt": "question", "answer": "answer"},
    )


def test_the_way_down_and_up_again(unmigrated: Database, tmp_path: Any) -> None:
    migrate_old(unmigrated, "ds_aaaaaaaaaaaa")
    with unmigrated.write() as session:
        session.add(Dataset(id="ds_cccccccccccc", name="without rows"))

    with unmigrated.engine.begin() as connection:
        command.downgrade(make_config(connection), BEFORE)
        rows = connection.execute(text("SELECT id, name, format, row_count FROM datasets ORDER BY id")).all()
        assert next(tuple(row) for row in rows) == (
            "ds_aaaaaaaaaaaa", "sums ds_aaaaaaaaaaaa", "prompt-answer", 40,
        )  # fmt: skip
        files = connection.execute(
            text("SELECT path, source_filename, source_size_bytes, source_sha256 FROM datasets ORDER BY id")
        ).all()
        assert [tuple(row) for row in files] == [
            ("datasets/ds_aaaaaaaaaaaa/data.parquet", "sums.jsonl", 77, "2" * 64),
            ("datasets/ds_cccccccccccc/data.parquet", "", 0, ""),
        ]
        names = connection.execute(text("SELECT * FROM jobs LIMIT 0")).keys()
        assert "dataset_version" not in names
        with pytest.raises(Exception, match="data_tasks"), connection.begin_nested():
            connection.execute(text("SELECT * FROM data_tasks"))
    with unmigrated.engine.begin() as connection:
        command.upgrade(make_config(connection), "head")
        check(connection)
        requests = connection.execute(text("SELECT request FROM data_tasks ORDER BY id")).scalars().all()
        assert "datasets/ds_aaaaaaaaaaaa/data.parquet" in str(requests[0])


def test_jobs_of_before_are_kept(unmigrated: Database) -> None:
    with unmigrated.engine.begin() as connection:
        command.upgrade(make_config(connection), BEFORE)
        columns = connection.execute(text("SELECT * FROM jobs LIMIT 0")).keys()
        job = {
            "id": "job_a", "name": "a", "state": "succeeded", "recipe": "sft", "model_id": "mdl_a",
            "dataset_id": "ds_aaaaaaaaaaaa", "params": "{}", "overrides": "{}", "seed": 1, "gpus": 1,
            "priority": 0, "attempt": 1, "created_at": "2026-01-01", "queued_at": "2026-01-01", "step": 0,
            "metric_step": -1, "event_count": 0, "line_count": 0,
        }  # fmt: skip
        insert(connection, "jobs", {name: value for name, value in job.items() if name in columns})
        command.upgrade(make_config(connection), "head")
        kept = connection.execute(
            text("SELECT id, dataset_id, dataset_version, validation_split FROM jobs")
        ).one()
        assert tuple(kept) == ("job_a", "ds_aaaaaaaaaaaa", None, None)
        command.downgrade(make_config(connection), BEFORE)
        assert connection.execute(text("SELECT dataset_id FROM jobs")).scalar_one() == "ds_aaaaaaaaaaaa"
