"""What nothing leads to any more goes, and nothing else."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_api.core.columns import utc_now
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.store import open_store
from trellis_api.jobs.models import Job
from trellis_data.versions.upkeep import verify
from trellis_workers.data.leftovers import clear_after
from trellis_workers.data.tidy import collect, tidy

from .conftest import ROWS


def test_rows_of_a_deleted_dataset_go_and_those_of_others_stay(
    platform: Any, dataset: dict[str, Any]
) -> None:
    before = platform.list_objects()
    other = platform.make(ROWS[:10], "other")
    platform.start_run(dataset["id"], output={"kind": "none"})
    platform.finish()
    assert platform.client.delete(f"/datasets/{other['id']}").status_code == 204

    tidy(platform.settings, platform.database)

    assert platform.list_objects() == before
    assert verify(open_store(platform.settings)) == []
    assert platform.get(f"/datasets/{dataset['id']}/rows", limit=1)["row_count"] == len(ROWS)


def test_rows_that_were_never_published_go_and_those_that_are_being_stay(
    platform: Any, dataset: dict[str, Any]
) -> None:
    from trellis_data.layout import Layout
    from trellis_data.versions.store import Entry
    from trellis_data.versions.version_rows import files_of

    store = open_store(platform.settings)
    head = store.version(dataset["head"])
    before = platform.list_objects()
    with store.writing():
        lost = store.add_version(files_of(store, head), Entry("lost", "admin", Layout("text", {})))
        # Somebody writes: nothing is tidied now.
        assert collect(platform.settings, platform.database, wait_s=0.1) is None
        assert store.version(lost.id)
    assert collect(platform.settings, platform.database) is not None

    assert platform.list_objects() == before


def test_folders_of_deleted_tasks_and_datasets_go(platform: Any, dataset: dict[str, Any]) -> None:
    run = platform.start_run(dataset["id"], output={"kind": "none"})
    platform.finish()
    assert (platform.folder(run) / "run" / "report.json").exists()
    tidy(platform.settings, platform.database)
    assert (platform.folder(run) / "run" / "report.json").exists()

    stray = platform.settings.data_root / "datasets" / "ds_aaaaaaaaaaaa" / "quarantine"
    stray.mkdir(parents=True)
    assert platform.client.delete(f"/data-tasks/{run}").status_code == 204
    platform.folder("dtk_aaaaaaaaaaaa").mkdir(parents=True)
    tidy(platform.settings, platform.database)

    assert not platform.folder(run).exists()
    assert not platform.folder("dtk_aaaaaaaaaaaa").exists()
    assert not stray.parent.exists()


def test_rows_that_a_run_kept_aside_go_with_their_dataset(platform: Any, dataset: dict[str, Any]) -> None:
    run = platform.start_run(dataset["id"], output={"kind": "none"})
    platform.finish()
    assert platform.client.delete(f"/datasets/{dataset['id']}").status_code == 204

    tidy(platform.settings, platform.database)

    assert not platform.folder(run).exists()


def test_old_uploads_go_unless_an_import_waits_for_them(platform: Any) -> None:
    waiting = platform.upload(ROWS, "waiting")
    answer = platform.client.post(
        "/uploads", headers={"Tus-Resumable": "1.0.0", "Upload-Length": "3", "Upload-Metadata": ""}
    )
    assert answer.status_code == 201, answer.text
    long_ago = time.time() - 3 * 24 * 3600
    folder = platform.settings.data_root / "uploads"
    for path in [*folder.glob("up_*"), *folder.glob("up_*/*")]:
        os.utime(path, (long_ago, long_ago))
    assert len(list(folder.glob("up_*"))) == 2

    tidy(platform.settings, platform.database)

    assert len(list(folder.glob("up_*"))) == 1
    platform.finish()
    assert platform.get(f"/datasets/{waiting['id']}")["state"] == "ready"


def test_an_import_that_is_over_leaves_no_folder_though_its_worker_has_died(platform: Any) -> None:
    """Only a worker that lives to the end of a task clears up after it."""
    paths = {}
    for state in ("failed", "cancelled", "running"):
        made = platform.upload(ROWS, state)
        folder = platform.folder(made["task"]["id"])
        (folder / "import" / "train").mkdir(parents=True)
        paths[state] = folder
        with platform.database.write() as session:
            task = session.get(DataTask, made["task"]["id"])
            task.state, task.touched_at = state, utc_now()
            session.add(task)

    tidy(platform.settings, platform.database)

    assert {state: folder.exists() for state, folder in paths.items()} == {
        "failed": False, "cancelled": False, "running": True,
    }  # fmt: skip
    assert [path.name for path in paths["running"].parent.iterdir()] == [paths["running"].name]


def test_a_run_that_failed_keeps_what_it_goes_on_with(platform: Any, dataset: dict[str, Any]) -> None:
    params = {"unit": "characters", "minimum": 10**6}
    strict = {"name": "strict", "steps": [{"operator": "length", "params": params}]}
    run = platform.start_run(dataset["id"], strict)
    platform.finish()
    assert platform.task(run)["state"] == "failed"

    tidy(platform.settings, platform.database)

    assert (platform.folder(run) / "run").is_dir()


def test_rows_kept_aside_by_imports_that_are_gone_go(platform: Any) -> None:
    """And so does what a killed process had half written of them, and the index to page through them."""
    dataset = platform.make(b'{"prompt": "What is it?", "answer": "5"}\n{"prompt": "cut\n')
    known = platform.get("/data-tasks", dataset=dataset["id"])["items"][0]["id"]
    folder = platform.settings.data_root / "datasets" / dataset["id"] / "quarantine"
    (folder / "index").mkdir(exist_ok=True)
    (folder / "index" / f"{known}.json").write_text("{}")
    (folder / f"{known}.draft").write_text("{")
    for stray in ("dtk_aaaaaaaaaaaa.jsonl", "dtk_aaaaaaaaaaaa.draft", "index/dtk_aaaaaaaaaaaa.json"):
        (folder / stray).write_text("{}")

    tidy(platform.settings, platform.database)

    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left == {f"{known}.jsonl", f"index/{known}.json"}


def test_a_worker_that_ends_late_leaves_the_folder_to_whoever_has_the_task_now(
    platform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = platform.upload(ROWS, "again")
    folder = platform.folder(made["task"]["id"])
    folder.mkdir(parents=True)
    platform.post(f"/data-tasks/{made['task']['id']}/cancel", status=200)
    remove = shutil.rmtree

    def remove_late(path: Path, **options: Any) -> None:
        """The task is taken up again while the files are being removed, which may take long."""
        platform.post(f"/data-tasks/{made['task']['id']}/retry", status=200)
        folder.mkdir()
        remove(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", remove_late)
        clear_after(platform.settings, platform.database, made["task"]["id"])

    assert list(folder.parent.iterdir()) == [folder]


@pytest.fixture
def migrated(platform: Any) -> Path:
    """The file of a dataset of before there were versions, whose import waits as migration 0009 queues it."""
    file: Path = platform.settings.data_root / "datasets" / "ds_aaaaaaaaaaaa" / "data.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(ROWS), file)
    source = {"kind": "path", "path": "datasets/ds_aaaaaaaaaaaa/data.parquet"}
    with platform.database.write() as session:
        session.add(Dataset(id="ds_aaaaaaaaaaaa", name="of before", task_id="dtk_aaaaaaaaaaaa"))
        session.add(
            DataTask(
                id="dtk_aaaaaaaaaaaa",
                kind="import",
                dataset_id="ds_aaaaaaaaaaaa",
                request={"kind": "import", "source": source},
            )
        )
    return file


def test_the_file_of_before_there_were_versions_goes_when_it_is_one(platform: Any, migrated: Path) -> None:
    tidy(platform.settings, platform.database)
    assert migrated.exists(), "its import waits"
    platform.finish()

    tidy(platform.settings, platform.database)

    assert not migrated.exists()
    assert platform.get("/datasets/ds_aaaaaaaaaaaa/rows", limit=1)["row_count"] == len(ROWS)


def test_the_file_of_before_stays_where_its_import_failed(platform: Any, migrated: Path) -> None:
    content = migrated.read_bytes()
    migrated.write_bytes(b"damaged")
    platform.finish()
    migrated.write_bytes(content)
    assert platform.task("dtk_aaaaaaaaaaaa")["state"] == "failed"
    more = platform.settings.data_root / "more.jsonl"
    more.write_text('{"prompt": "What is it that you see?", "answer": "5"}\n')
    platform.post("/datasets/ds_aaaaaaaaaaaa/imports", {"source": {"kind": "path", "path": "more.jsonl"}})
    platform.finish()

    tidy(platform.settings, platform.database)

    assert migrated.exists(), "other rows came to the dataset, not these"


@pytest.mark.parametrize("reader", ["job", "validation", "import"])
def test_the_file_of_before_stays_while_something_reads_it(
    platform: Any, migrated: Path, reader: str
) -> None:
    platform.finish()
    job = {"recipe": "sft", "model_id": "mdl_aaaaaaaaaaaa", "state": "running"}
    names = {"job": "dataset_id", "validation": "validation_dataset_id"}
    with platform.database.write() as session:
        if reader == "import":
            source = {"kind": "path", "path": "datasets/ds_aaaaaaaaaaaa"}
            request = {"kind": "import", "source": source}
            row: Any = DataTask(
                id="dtk_bbbbbbbbbbbb", kind="import", dataset_id="ds_aaaaaaaaaaaa", request=request
            )
        else:
            row = Job(id="job_aaaaaaaaaaaa", name="old", **job, **{names[reader]: "ds_aaaaaaaaaaaa"})
        session.add(row)
    tidy(platform.settings, platform.database)
    assert migrated.exists()

    with platform.database.write() as session:
        kept = session.get(type(row), row.id)
        kept.state = "succeeded"
        session.add(kept)
    tidy(platform.settings, platform.database)

    assert not migrated.exists()
