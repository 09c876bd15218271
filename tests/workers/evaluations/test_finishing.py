"""From an evaluation's row to its scores: what a run is told, what is taken in, whatever dies in between."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_api.benchmarks import repository as benchmarks
from trellis_api.benchmarks.installed import locate_benchmark
from trellis_api.core.errors import DomainError
from trellis_api.evaluations import repository, service
from trellis_api.evaluations.create import create
from trellis_api.evaluations.folder import evaluation_folder, result_path
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import EvaluationCreate
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_contracts.attempt import REWARD_KEYS_FILE, SPEC_FILE
from trellis_contracts.recipe import Engine
from trellis_contracts.states import JobState
from trellis_testing.evaluations import install_gsm8k, leave_results
from trellis_testing.waiting import wait_until
from trellis_workers.core.ray_client import RayJob, RayStatus
from trellis_workers.evaluations.finish import finish_evaluations
from trellis_workers.evaluations.tidy import tidy_evaluations
from trellis_workers.jobs import finish as finish_module
from trellis_workers.jobs import settle as settle_module
from trellis_workers.jobs.launch import _settle_failed, _write_attempt, launch_queued
from trellis_workers.jobs.reconcile import reconcile
from trellis_workers.jobs.settle import settle
from trellis_workers.jobs.verdict import Settlement

SUCCEEDED = Settlement(JobState.SUCCEEDED, 0)
JUDGES = {
    "big": {"base_url": "http://127.0.0.1:1/v1", "model": "big", "key_variable": "KEY_OF_A_TEST"},
    "open": {"base_url": "http://127.0.0.1:1/v1", "model": "open"},
}


def queue(platform: Any, *orders: dict[str, Any]) -> tuple[Job, Evaluation]:
    """An evaluation that has been claimed by a worker."""
    body = {
        "targets": [{"kind": "model", "model": "mdl_aaaaaaaaaaaa"}],
        "benchmarks": list(orders) or [{"benchmark": "gsm8k"}],
    }
    with platform.write() as session:
        (row,) = create(session, platform.settings, request=EvaluationCreate.model_validate(body))
        assert jobs.claim_for_launch(session, job_id=row.job_id) is not None
    return platform.get_job(row.job_id), row


def read(platform: Any, evaluation_id: str) -> Evaluation:
    with platform.read() as session:
        return service.get_evaluation(session, evaluation_id=evaluation_id)


def test_a_run_is_told_what_to_measure(install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_A_TEST", "secret")
    platform = install(TRELLIS_JUDGES=json.dumps(JUDGES), TRELLIS_EVALUATION_NICE="7")
    install_gsm8k(platform)
    judge = {"kind": "judge", "judge": "big", "rubric": "Is it right?"}
    custom = {"benchmark": "custom", "dataset": "ds_aaaaaaaaaaaa", "scorer": judge}
    job, row = queue(platform, {"benchmark": "gsm8k", "limit": 2}, custom)

    spec = _write_attempt(platform.settings, job, "token")

    task = spec.evaluation
    assert task is not None
    assert (spec.engine, spec.gpus, spec.env["TRELLIS_NICENESS"]) == (Engine.EVALUATE, 0, "7")
    assert (task.evaluation_id, task.output_dir) == (
        row.id, str(evaluation_folder(platform.settings, row.id)),
    )  # fmt: skip
    gsm8k, own = task.benchmarks
    assert gsm8k.files is not None
    assert own.files is not None
    assert [Path(each).read_text().count("\n") for each in gsm8k.files.paths["test"]] == [3]
    assert (own.judge and own.judge.model, own.files.revision) == ("big", own.order.version)  # type: ignore[union-attr]
    folder = platform.attempt_dir(job)
    keys = folder / REWARD_KEYS_FILE
    assert json.loads(keys.read_text()) == {"big": "secret"}
    assert keys.stat().st_mode & 0o077 == 0
    assert "secret" not in (folder / SPEC_FILE).read_text()


def test_scores_are_recorded_once_and_keys_do_not_outlive_the_run(install: Callable[..., Any]) -> None:
    platform = install()
    job, row = queue(platform)
    leave_results(platform.settings, row)
    keys = platform.attempt_dir(job) / REWARD_KEYS_FILE
    keys.parent.mkdir(parents=True)
    keys.write_text("{}")

    settled = [settle(job, SUCCEEDED) for _ in range(2)]

    found = read(platform, row.id)
    assert settled == [True, False]
    assert platform.get_job(job.id).state == JobState.SUCCEEDED
    assert found.results is not None
    assert found.results[0]["scores"][0]["value"] == 0.75
    assert not keys.exists()


def test_a_worker_that_dies_between_the_result_and_the_end_leaves_both_or_neither(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job, row = queue(platform)
    leave_results(platform.settings, row)

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(settle_module.recording.repository, "replace_scores", die)
        with pytest.raises(SystemExit):
            settle(job, SUCCEEDED)
    in_between = (platform.get_job(job.id).state, read(platform, row.id).results)
    settle(job, SUCCEEDED)

    assert in_between == (JobState.LAUNCHING, None)
    assert platform.get_job(job.id).state == JobState.SUCCEEDED
    assert read(platform, row.id).results is not None


def test_a_run_that_left_no_result_has_failed_whatever_its_exit_code(install: Callable[..., Any]) -> None:
    platform = install()
    job, row = queue(platform)
    leave_results(platform.settings, row)
    path = result_path(platform.settings, row.id)
    path.write_text(path.read_text()[:100])  # as a full disk leaves what is not written beside and renamed

    settle(job, SUCCEEDED)

    settled = platform.get_job(job.id)
    assert (settled.state, settled.cause) == (JobState.FAILED, "evaluation_invalid")
    assert read(platform, row.id).results is None


def test_a_model_that_went_meanwhile_changes_no_score(install: Callable[..., Any]) -> None:
    platform = install()
    job, row = queue(platform)
    leave_results(platform.settings, row)
    with platform.write() as session:
        session.delete(session.get(Model, "mdl_aaaaaaaaaaaa"))

    settle(job, SUCCEEDED)

    assert platform.get_job(job.id).state == JobState.SUCCEEDED
    assert read(platform, row.id).target_name == "tiny"


def test_one_that_made_room_is_queued_again_when_it_has_left(install: Callable[..., Any]) -> None:
    platform = install()
    job, row = queue(platform)
    with platform.write() as session:
        service.displace(session, job=jobs.get_locked_job(session, job_id=job.id))

    settle(platform.get_job(job.id), Settlement(JobState.STOPPED, 75))

    again = platform.get_job(job.id)
    assert (again.state, again.attempt) == (JobState.QUEUED, 2)
    assert read(platform, row.id).displaced_at is None


@pytest.mark.parametrize("wrong", ["failed", "gone"])
def test_one_without_its_benchmark_fails_with_what_to_do(install: Callable[..., Any], wrong: str) -> None:
    platform = install()
    if wrong == "gone":
        install_gsm8k(platform)
        shutil.rmtree(locate_benchmark(platform.settings, "gsm8k"))
    job, _ = queue(platform)

    with pytest.raises(DomainError, match="gsm8k") as raised:
        _write_attempt(platform.settings, job, "token")
    _settle_failed(job, str(raised.value), raised.value.code)

    settled = platform.get_job(job.id)
    assert (settled.state, settled.cause) == (JobState.FAILED, "benchmark_missing")


def test_only_runs_that_are_over_are_finished_and_one_does_not_hold_up_the_others(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    (broken, _), (over, over_row), (running, _) = (queue(platform) for _ in range(3))
    leave_results(platform.settings, over_row)

    class Cluster:
        def find(self, submission_id: str) -> RayJob:
            if submission_id.startswith(broken.id):
                raise RuntimeError("what nobody thought of")
            status = RayStatus.SUCCEEDED if submission_id.startswith(over.id) else RayStatus.RUNNING
            return RayJob(submission_id, status, 0, "", {})

    monkeypatch.setattr(finish_module, "get_ray", Cluster)

    assert finish_evaluations()

    states = [platform.get_job(job.id).state for job in (broken, over, running)]
    assert states == [JobState.LAUNCHING, JobState.SUCCEEDED, JobState.LAUNCHING]


def test_the_files_of_a_deleted_one_are_removed_and_a_full_disk_of_errors_is_waited_out(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job, row = queue(platform)
    leave_results(platform.settings, row)
    settle(job, SUCCEEDED)
    folder = evaluation_folder(platform.settings, row.id)
    with platform.write() as session:
        service.delete(session, evaluation_id=row.id)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        tidy_evaluations()
    with platform.read() as session:
        kept = list(repository.list_leftovers(session))
    tidy_evaluations()

    assert kept == [row.id]
    assert not folder.exists()
    assert list(folder.parent.iterdir()) == []
    with platform.read() as session:
        assert list(repository.list_leftovers(session)) == []
        assert benchmarks.list_installing(session) == ["gsm8k"]


@pytest.mark.slow
def test_an_evaluation_runs_on_the_cluster_beside_a_training_that_has_the_only_slot(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_SLOTS="1")
    install_gsm8k(platform)
    training = platform.add_job()
    body = {
        "targets": [{"kind": "model", "model": "mdl_aaaaaaaaaaaa"}],
        "benchmarks": [{"benchmark": "gsm8k"}],
    }
    with platform.write() as session:
        (row,) = create(session, platform.settings, request=EvaluationCreate.model_validate(body))

    def are_started() -> bool:
        launch_queued()  # as beat does, again and again: the cluster's agent may not be up yet
        return len(platform.list_starts()) == 2

    wait_until(are_started, 90, "both runs start", pause_s=0.5)
    job = platform.get_job(row.job_id)
    reconcile()
    leave_results(platform.settings, row)
    platform.end_run(job, 0)
    wait_until(finish_evaluations, 60, "the evaluation is settled")
    platform.end_run(training, 0)

    assert platform.get_job(job.id).state == JobState.SUCCEEDED
    assert read(platform, row.id).results is not None
