"""What follows from the end of an attempt: one model, one export, whatever dies in between."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.jobs import repository, service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.jobs.models import EXPORT, Checkpoint, Job
from trellis_api.jobs.repository import JobFilter
from trellis_api.jobs.schemas import ExportCreate
from trellis_api.models import repository as models
from trellis_api.models.service import model_folder, staging_folder
from trellis_contracts import tasks
from trellis_contracts.attempt import SPEC_FILE, locate_staging
from trellis_contracts.spec import JobSpec
from trellis_contracts.states import JobState
from trellis_testing.model_folders import write_model_folder
from trellis_workers.core.configuration import build_configuration
from trellis_workers.core.ray_client import RayJob, RayJobs, RayStatus
from trellis_workers.jobs import settle as settle_module
from trellis_workers.jobs.finish_exports import finish_exports
from trellis_workers.jobs.launch import _write_attempt
from trellis_workers.jobs.leftovers import remove_leftovers
from trellis_workers.jobs.prune import prune_checkpoints
from trellis_workers.jobs.reconcile import reconcile
from trellis_workers.jobs.settle import settle
from trellis_workers.jobs.verdict import Settlement

SUCCEEDED = Settlement(JobState.SUCCEEDED, 0)


def add_checkpoint(platform: Any, job: Job, step: int) -> Path:
    folder: Path = platform.settings.checkpoint_dir(job.id) / f"global_step_{step}"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"x" * 100)
    with platform.write() as session:
        session.add(
            Checkpoint(
                job_id=job.id, step=step, attempt=1, path=str(folder), size_bytes=100, created_at=utc_now()
            )
        )
    return folder


def claim(platform: Any, job: Job) -> Job:
    with platform.write() as session:
        assert service.claim_for_launch(session, job_id=job.id) is not None
    found: Job = platform.get_job(job.id)
    return found


def queue_export(platform: Any) -> Job:
    """An export that has been launched."""
    source = platform.add_job(state=JobState.SUCCEEDED)
    add_checkpoint(platform, source, 3)
    with platform.write() as session:
        request = ExportCreate(name="made")
        job = exports.request_export(
            session, job_id=source.id, step=3, request=request, settings=platform.settings
        )
    return claim(platform, job)


def order_of(job: Job) -> ExportOrder:
    return ExportOrder.model_validate(job.export)


def list_models(platform: Any) -> list[str]:
    with platform.read() as session:
        found = models.list_models(session, text="made", state=None, after=None, limit=9)
    return [model.name for model in found]


def list_exports(platform: Any) -> list[Job]:
    with platform.read() as session:
        return list(repository.list_jobs(session, wanted=JobFilter(kind=EXPORT), before=None, limit=9))


def list_leftovers(platform: Any) -> list[str]:
    with platform.read() as session:
        return [row.job_id for row in repository.list_leftovers(session)]


def test_an_export_that_succeeded_registers_its_model_once(install: Callable[..., Any]) -> None:
    platform = install()
    job = queue_export(platform)
    write_model_folder(model_folder(platform.settings, order_of(job).model_id))

    settled = [settle(job, SUCCEEDED) for _ in range(2)]

    assert settled == [True, False]
    assert platform.get_job(job.id).state == JobState.SUCCEEDED
    assert list_models(platform) == ["made"]


def test_a_worker_that_dies_between_leaves_both_or_neither(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job = queue_export(platform)
    write_model_folder(model_folder(platform.settings, order_of(job).model_id))

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(settle_module, "register_export", die)
        with pytest.raises(SystemExit):
            settle(job, SUCCEEDED)
    in_between = (platform.get_job(job.id).state, list_models(platform))
    settle(job, SUCCEEDED)

    assert in_between == (JobState.LAUNCHING, [])
    assert (platform.get_job(job.id).state, list_models(platform)) == (JobState.SUCCEEDED, ["made"])


def test_an_export_that_wrote_nothing_usable_has_failed(install: Callable[..., Any]) -> None:
    platform = install()
    job = queue_export(platform)
    folder = write_model_folder(model_folder(platform.settings, order_of(job).model_id))
    (folder / "model.safetensors").write_bytes(b"not weights")

    settle(job, SUCCEEDED)

    settled = platform.get_job(job.id)
    assert (settled.state, settled.cause) == (JobState.FAILED, "export_invalid")
    assert list_models(platform) == []
    remove_leftovers()
    assert not folder.exists()


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CRASHED, JobState.STOPPED])
def test_what_an_export_left_that_did_not_succeed_is_removed(
    state: JobState, install: Callable[..., Any]
) -> None:
    platform = install()
    job = queue_export(platform)
    model_id = order_of(job).model_id
    left = [staging_folder(platform.settings, model_id), model_folder(platform.settings, model_id)]
    for folder in left:
        folder.mkdir(parents=True)

    settle(job, Settlement(state, 1))
    is_untouched = all(folder.exists() for folder in left)
    remove_leftovers()

    assert is_untouched
    assert not any(folder.exists() for folder in left)
    assert list_leftovers(platform) == []


def test_a_removal_of_what_an_export_left_is_finished_after_a_crash(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job = queue_export(platform)
    folder = model_folder(platform.settings, order_of(job).model_id)
    folder.mkdir(parents=True)
    settle(job, Settlement(JobState.FAILED, 1))

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die)
        with pytest.raises(SystemExit):
            remove_leftovers()
    in_between = (list_leftovers(platform), len(list(folder.parent.iterdir())))
    remove_leftovers()

    assert in_between == ([job.id], 1)
    assert (list_leftovers(platform), list(folder.parent.iterdir())) == ([], [])


def test_what_an_export_left_stays_where_a_new_attempt_writes(install: Callable[..., Any]) -> None:
    platform = install()
    job = queue_export(platform)
    folder = model_folder(platform.settings, order_of(job).model_id)
    folder.mkdir(parents=True)
    settle(job, Settlement(JobState.FAILED, 1))
    with platform.write() as session:
        service.resume(session, job_id=job.id, data_root=platform.settings.data_root)

    remove_leftovers()

    assert folder.exists()
    assert list_leftovers(platform) == []


def test_the_sweep_of_the_reconciler_leaves_weights_to_a_task_without_a_limit(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job = queue_export(platform)
    write_model_folder(model_folder(platform.settings, order_of(job).model_id))
    monkeypatch.setattr(RayJobs, "find", lambda _self, name: RayJob(name, RayStatus.SUCCEEDED, 0, "", {}))
    # Not asked for real: Ray would be loaded here without the token that other tests of this process need.
    monkeypatch.setattr(RayJobs, "list_unfinished", lambda _self: [])

    reconcile()
    after_the_sweep = platform.get_job(job.id).state
    finish_exports()

    assert after_the_sweep == JobState.LAUNCHING
    assert (platform.get_job(job.id).state, list_models(platform)) == (JobState.SUCCEEDED, ["made"])


PRINT_LIMITS = """
import json, sys
from trellis_workers.core.app import app

app.loader.import_default_modules()
print(json.dumps([app.tasks[name].time_limit for name in sys.argv[1:]]))
"""


@pytest.mark.slow
def test_beat_repeats_what_finishes_exports(install: Callable[..., Any]) -> None:
    install()

    scheduled = {entry["task"] for entry in build_configuration()["beat_schedule"].values()}

    assert {tasks.FINISH_EXPORTS, tasks.PURGE} <= scheduled
    # In a process of its own: loading every task loads Ray, which reads its token once a process.
    done = subprocess.run(
        [sys.executable, "-c", PRINT_LIMITS, tasks.RECONCILE, tasks.FINISH_EXPORTS],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [120, None]


def test_an_export_is_told_the_checkpoint_and_the_folder(install: Callable[..., Any]) -> None:
    platform = install()
    job = queue_export(platform)

    written = _write_attempt(platform.settings, job, "a token")

    spec = JobSpec.model_validate_json((platform.attempt_dir(job) / SPEC_FILE).read_text())
    assert spec == written
    order = order_of(job)
    assert spec.export is not None
    assert (
        Path(spec.export.checkpoint_path) == platform.settings.checkpoint_dir(order.job_id) / "global_step_3"
    )
    assert Path(spec.export.output_path) == platform.settings.data_root / "models" / order.model_id
    assert locate_staging(Path(spec.export.output_path)).parent == Path(spec.export.output_path).parent
    assert (spec.engine, spec.gpus, spec.train_data) == ("export", 0, None)


def test_a_training_queues_the_export_that_was_promised_once(install: Callable[..., Any]) -> None:
    platform = install()
    job = claim(platform, platform.add_job(export_as={"name": "made", "best_by": None, "mode": None}))
    add_checkpoint(platform, job, 2)

    for _ in range(2):
        settle(job, SUCCEEDED)

    (export,) = list_exports(platform)
    assert (export.state, order_of(export).step) == (JobState.QUEUED, 2)
    assert platform.get_job(job.id).export_as["job_id"] == export.id


def test_a_promise_that_breaks_does_not_change_the_training(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job = claim(platform, platform.add_job(export_as={"name": "made", "best_by": None, "mode": None}))
    add_checkpoint(platform, job, 2)

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("something nobody thought of")

    monkeypatch.setattr(exports, "request_export", fail)
    settle(job, SUCCEEDED)

    settled = platform.get_job(job.id)
    assert settled.state == JobState.SUCCEEDED
    assert "could not be queued" in settled.export_as["problem"]
    assert list_exports(platform) == []


def test_files_of_what_was_given_up_are_removed(install: Callable[..., Any]) -> None:
    platform = install()
    job = platform.add_job(state=JobState.SUCCEEDED, params={"keep_checkpoints": 1})
    folders = [add_checkpoint(platform, job, step) for step in (1, 2, 3)]
    with platform.write() as session:
        locked = service.get_locked_job(session, job_id=job.id)
        given_up = checkpoints.apply_retention(session, job=locked)

    prune_checkpoints()

    assert sorted(given_up) == [1, 2]
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert [path.name for path in folders[2].parent.iterdir()] == ["global_step_3"]
    with platform.read() as session:
        rows = repository.list_checkpoints(session, job_id=job.id)
        assert [(row.step, row.removed_at is not None) for row in rows] == [(3, False), (2, True), (1, True)]
        found = checkpoints.list_page(
            session,
            job_id=job.id,
            data_root=platform.settings.data_root,
            metric=None,
            mode=None,
            cursor=None,
            limit=10,
        )
    assert [row.size_bytes for row in found.items] == [100, 0, 0]


def test_a_checkpoint_that_is_written_again_is_not_removed(install: Callable[..., Any]) -> None:
    platform = install()
    job = platform.add_job(state=JobState.RUNNING, step=2, attempt=2, resume_step=1)
    folder = add_checkpoint(platform, job, 5)
    with platform.write() as session:
        row = repository.find_checkpoint(session, job_id=job.id, step=5)
        row.pruned_at = utc_now()
        session.add(row)

    prune_checkpoints()

    assert (folder / "weights").exists()


def test_a_removal_that_was_interrupted_is_finished(install: Callable[..., Any]) -> None:
    platform = install()
    job = platform.add_job(state=JobState.SUCCEEDED)
    folder = add_checkpoint(platform, job, 1)
    with platform.write() as session:
        row = repository.find_checkpoint(session, job_id=job.id, step=1)
        row.pruned_at = utc_now()
        session.add(row)
    folder.rename(folder.with_name(".removed-1"))

    prune_checkpoints()

    assert list(folder.parent.iterdir()) == []
    with platform.read() as session:
        assert repository.find_checkpoint(session, job_id=job.id, step=1).removed_at is not None
