"""The files of deleted jobs go, even where the message that asks for it is lost."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from trellis_api.jobs import repository, service
from trellis_api.jobs.models import Job
from trellis_contracts import tasks
from trellis_workers.core.configuration import build_configuration
from trellis_workers.core.lock import try_lock
from trellis_workers.jobs.purge import purge_deleted


def add_job_with_files(platform: Any) -> Job:
    job: Job = platform.add_job()
    folder = platform.settings.checkpoint_dir(job.id) / "global_step_1"
    folder.mkdir(parents=True)
    (folder / "weights").write_text("many numbers")
    return job


def delete_job(platform: Any, job: Job) -> None:
    with platform.write() as session:
        service.request_stop(session, job_id=job.id)
        service.delete_job(session, job_id=job.id)


def list_purges(platform: Any) -> list[str]:
    with platform.read() as session:
        return list(repository.list_purges(session))


def list_folders(platform: Any) -> list[str]:
    return [path.name for path in (platform.settings.data_root / "jobs").iterdir()]


def test_a_sweep_removes_the_files_of_deleted_jobs_alone(install: Any) -> None:
    platform = install()
    job, other = add_job_with_files(platform), add_job_with_files(platform)
    delete_job(platform, job)

    purge_deleted()

    assert list_folders(platform) == [other.id]
    assert list_purges(platform) == []


def test_beat_repeats_the_sweep(install: Any) -> None:
    install()

    scheduled = {entry["task"] for entry in build_configuration()["beat_schedule"].values()}

    assert tasks.PURGE in scheduled


def test_files_that_cannot_be_removed_are_tried_again(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = install()
    job = add_job_with_files(platform)
    delete_job(platform, job)

    def fail_in_the_middle(_folder: Path) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", fail_in_the_middle)
        purge_deleted()
    waiting = list_purges(platform)
    purge_deleted()

    assert waiting == [job.id]
    assert list_folders(platform) == []
    assert list_purges(platform) == []


def test_a_deleted_job_without_files_leaves_no_tombstone(install: Any) -> None:
    platform = install()
    delete_job(platform, platform.add_job())

    purge_deleted()

    assert list_purges(platform) == []


def test_a_link_is_removed_and_its_target_stays(install: Any, tmp_path: Path) -> None:
    platform = install()
    job = platform.add_job()
    target = tmp_path / "large disk"
    target.mkdir()
    (platform.settings.data_root / "jobs").mkdir()
    platform.settings.job_dir(job.id).symlink_to(target)
    delete_job(platform, job)

    purge_deleted()

    assert target.is_dir()
    assert list_folders(platform) == []
    assert list_purges(platform) == []


def test_one_worker_at_a_time_removes_files(install: Any) -> None:
    platform = install()
    job = add_job_with_files(platform)
    delete_job(platform, job)

    with try_lock(platform.settings.data_root / "run" / "purge.lock"):
        purge_deleted()

    assert list_folders(platform) == [job.id]
    assert list_purges(platform) == [job.id]
