"""What nothing leads to any more goes, and nothing else."""

import os
import time
from typing import Any

from trellis_api.datasets.store import open_store
from trellis_data.versions.upkeep import verify
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
    from trellis_data.versions.rows import files_of
    from trellis_data.versions.store import Entry

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
