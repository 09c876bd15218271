"""Launching on a real Ray cluster: in order, once, and not before the slots are free."""

import json
import time
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy.exc import OperationalError
from trellis_api.jobs import models as job_models
from trellis_api.jobs import service
from trellis_api.jobs.errors import UnknownVersion
from trellis_api.jobs.queue import admission
from trellis_contracts.spec import JobSpec
from trellis_contracts.states import JobState
from trellis_recipes.placement import ResourceDemand
from trellis_testing.datasets import add_version
from trellis_testing.waiting import wait_until
from trellis_workers.core.ray_client import OVER, get_ray
from trellis_workers.jobs import launch
from trellis_workers.jobs.launch import _prepare_training, launch_queued
from trellis_workers.jobs.reconcile import reconcile


def wait_for_exit(job: Any) -> None:
    name = service.submission_id(job)
    wait_until(lambda: getattr(get_ray().find(name), "status", None) in OVER, 30, f"{name} is over")


def test_a_queued_job_is_started_with_its_spec(on_ray: Any) -> None:
    platform = on_ray()
    job = platform.add_job(name="learn sums", seed=7)

    launch_queued()
    wait_until(lambda: platform.list_starts() == [f"{job.id}-1"], 30, "the job starts")

    spec_path = platform.attempt_dir(job) / "spec.json"
    spec = JobSpec.model_validate_json(spec_path.read_text())
    assert platform.get_job(job.id).state == JobState.LAUNCHING
    assert (spec.job_id, spec.attempt, spec.seed, spec.name) == (job.id, 1, 7, "learn sums")
    assert f"{platform.settings.data_root}/models/tiny" in "".join(spec.engine_overrides)
    assert spec.train_data is not None
    assert (spec.train_data.split, spec.train_data.row_count) == ("train", 1_000)
    assert (platform.attempt_dir(job) / "token").stat().st_mode & 0o777 == 0o600
    record = json.loads((platform.attempt_dir(job) / "composition.json").read_text())
    assert record["config"]["algorithm"]["adv_estimator"] == "grpo"
    assert "verl" in record["command"]
    platform.end_run(job, 0)
    wait_for_exit(job)


def test_a_job_is_told_the_files_of_its_version_whatever_came_later(install: Any) -> None:
    platform = install()

    def publish(**splits: int) -> str:
        rows = {
            name: [{"answer": f"#### {n}", "prompt": f"{n}?"} for n in range(count)]
            for name, count in splits.items()
        }
        with platform.database.write() as session:
            return add_version(session, platform.settings, "ds_aaaaaaaaaaaa", rows).id

    version = publish(train=90, test=70)
    job = platform.add_job(
        dataset_version=version,
        dataset_split="train",
        validation_dataset_id="ds_aaaaaaaaaaaa",
        validation_version=version,
        validation_split="test",
    )
    publish(train=3)

    spec, _ = _prepare_training(platform.settings, job)

    train, validation = spec.train_data, spec.validation_data
    assert train is not None
    assert validation is not None
    assert (train.version, train.split, train.row_count) == (version, "train", 90)
    assert (validation.version, validation.split, validation.row_count) == (version, "test", 70)
    assert train.columns == {"prompt": "prompt", "answer": "answer"}
    assert train.sha256 == validation.sha256 != version
    for source in (train, validation):
        rows = sum(pq.read_metadata(path).num_rows for path in source.paths)
        assert rows == source.row_count


def test_the_validation_is_read_by_columns_of_its_own(install: Any) -> None:
    platform = install()
    rows = [{"prompt": f"{n}?", "answer": "wrong", "reply": f"#### {n}"} for n in range(90)]
    with platform.database.write() as session:
        version = add_version(session, platform.settings, "ds_aaaaaaaaaaaa", {"train": rows, "test": rows}).id
    job = platform.add_job(
        dataset_version=version,
        dataset_split="train",
        validation_dataset_id="ds_aaaaaaaaaaaa",
        validation_version=version,
        validation_split="test",
        validation_columns={"prompt": "prompt", "answer": "reply"},
        validation_data_format="prompt-answer",
    )

    spec, _ = _prepare_training(platform.settings, job)

    assert spec.train_data is not None
    assert spec.validation_data is not None
    assert spec.train_data.columns == {"prompt": "prompt", "answer": "answer"}
    assert spec.validation_data.columns == {"prompt": "prompt", "answer": "reply"}


def test_a_job_whose_version_is_gone_fails_with_a_reason(install: Any) -> None:
    platform = install()
    job = platform.add_job(dataset_version="0" * 64, dataset_split="train")

    with pytest.raises(UnknownVersion, match="no version"):
        _prepare_training(platform.settings, job)


def test_the_second_job_waits_for_the_only_slot(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_SLOTS="1")
    first, second = platform.add_job(), platform.add_job()

    launch_queued()
    launch_queued()
    while_first_runs = platform.get_job(second.id).state
    wait_until(lambda: platform.list_starts() == [f"{first.id}-1"], 30, "the first job starts")
    platform.end_run(first, 0)
    wait_for_exit(first)
    reconcile()
    launch_queued()
    wait_until(lambda: len(platform.list_starts()) == 2, 30, "the second job starts")

    assert while_first_runs == JobState.QUEUED
    assert platform.get_job(first.id).state == JobState.SUCCEEDED
    assert platform.list_starts() == [f"{first.id}-1", f"{second.id}-1"]
    platform.end_run(second, 0)
    wait_for_exit(second)


def test_jobs_are_launched_by_priority_then_in_order(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_SLOTS="2")
    low, early, late, high = (platform.add_job(priority=p) for p in (-1, 0, 0, 5))

    launch_queued()

    states = {job.id: platform.get_job(job.id).state for job in (low, early, late, high)}
    assert states == {
        low.id: JobState.QUEUED,
        early.id: JobState.LAUNCHING,
        late.id: JobState.QUEUED,
        high.id: JobState.LAUNCHING,
    }
    for job in (early, high):
        platform.end_run(job, 0)
        wait_for_exit(job)


def test_submitting_again_under_the_same_number_starts_nothing(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_LAUNCH_TIMEOUT_S="0.001")
    job = platform.add_job()

    launch_queued()
    wait_until(platform.list_starts, 30, "the job starts")
    is_new = get_ray().submit(
        f"{job.id}-1", entrypoint="touch /dev/null", demand=ResourceDemand(1, 0), env={}, metadata={}
    )
    launch_queued()

    assert not is_new
    assert platform.list_starts() == [f"{job.id}-1"]
    platform.end_run(job, 0)
    wait_for_exit(job)


def test_a_launch_that_lost_its_worker_is_taken_up_again(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_LAUNCH_TIMEOUT_S="0.5")
    job = platform.add_job()
    with platform.write() as session:
        admission.claim_next(session, total_slots=1, max_exports=1)  # and here the worker dies

    launch_queued()
    too_early = platform.attempt_dir(job).exists()
    time.sleep(0.6)
    launch_queued()
    wait_until(platform.list_starts, 30, "the job starts")

    assert not too_early
    assert platform.list_starts() == [f"{job.id}-1"]
    platform.end_run(job, 0)
    wait_for_exit(job)


def test_jobs_wait_while_ray_is_away(install: Any) -> None:
    platform = install()
    job = platform.add_job()

    launch_queued()

    assert platform.get_job(job.id).state == JobState.QUEUED


def test_a_full_disk_fails_the_job_with_a_clear_reason(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_MIN_FREE_DISK_BYTES=str(2**60))
    job = platform.add_job()

    launch_queued()

    settled = platform.get_job(job.id)
    assert settled.state == JobState.FAILED
    assert settled.cause == "storage_full"
    assert settled.reason == "Not enough disk space in the data root to launch a job."


def test_a_data_root_that_cannot_be_written_fails_the_job_with_a_clear_reason(on_ray: Any) -> None:
    platform = on_ray()
    (platform.settings.data_root / "jobs").write_text("a file where the folder should be")
    job = platform.add_job()

    launch_queued()

    settled = platform.get_job(job.id)
    assert (settled.state, settled.cause) == (JobState.FAILED, "storage_unwritable")
    assert "cannot be written" in settled.reason


def test_jobs_that_cannot_run_any_more_fail_with_their_reasons_and_the_next_one_starts(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_SLOTS="4")
    broken = {
        "unknown_model": platform.add_job(model_id="mdl_bbbbbbbbbbbb"),
        "unknown_dataset": platform.add_job(dataset_id="ds_bbbbbbbbbbbb"),
        "bad_configuration": platform.add_job(overrides={"actor_rollout_ref.actor.no_such_key": 1}),
    }
    healthy = platform.add_job()

    launch_queued()

    for cause, job in broken.items():
        settled = platform.get_job(job.id)
        assert (settled.state, settled.cause) == (JobState.FAILED, cause)
        assert settled.reason
    assert platform.get_job(healthy.id).state == JobState.LAUNCHING
    platform.end_run(healthy, 0)
    wait_for_exit(healthy)


class ReadyRay:
    """A cluster that takes every submission."""

    def __init__(self) -> None:
        self.submitted: list[str] = []

    def ping(self) -> None:
        """Answers."""

    def find(self, submission_id: str) -> None:
        del submission_id

    def submit(self, submission_id: str, **_told: Any) -> bool:
        self.submitted.append(submission_id)
        return True


def damage_preparation(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> ReadyRay:
    """Make the job of that name fail to be prepared, on a cluster that takes all others."""
    ray, prepare = ReadyRay(), launch._prepare_training

    def fail(settings: Any, job: Any) -> Any:
        if job.name == name:
            raise error
        return prepare(settings, job)

    monkeypatch.setattr(launch, "get_ray", lambda: ray)
    monkeypatch.setitem(launch._PREPARE, job_models.TRAIN, fail)
    return ray


def test_an_unexpected_error_fails_its_job_and_the_next_one_starts(
    install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install(TRELLIS_SLOTS="1", TRELLIS_LAUNCH_TIMEOUT_S="0.1")
    left, bad, good = (platform.add_job(name=name) for name in ("bad", "bad", "good"))
    with platform.write() as session:
        admission.claim_next(session, total_slots=1, max_exports=1)  # by a worker that died before Ray had it
    time.sleep(0.2)
    ray = damage_preparation(monkeypatch, "bad", ValueError("Parquet magic bytes not found"))

    launch_queued()

    for job in (left, bad):
        settled = platform.get_job(job.id)
        assert (settled.state, settled.cause) == (JobState.FAILED, "launch_failed")
        assert settled.reason == "The job could not be prepared: ValueError: Parquet magic bytes not found"
    assert ray.submitted == [f"{good.id}-1"]


def test_a_launch_waits_while_the_database_is_away(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = install()
    job = platform.add_job(name="bad")
    ray = damage_preparation(monkeypatch, "bad", OperationalError("SELECT", {}, Exception("gone")))

    with pytest.raises(OperationalError):
        launch_queued()

    assert (platform.get_job(job.id).state, ray.submitted) == (JobState.LAUNCHING, [])


def test_a_job_whose_models_template_has_become_endless_is_not_started(on_ray: Any) -> None:
    platform = on_ray()
    job = platform.add_job()
    folder = platform.settings.data_root / "models" / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text("{{ ('x' * 9999999999) | length }}")

    launch_queued()

    failed = platform.get_job(job.id)
    assert (failed.state, failed.cause) == (JobState.FAILED, "chat_template_runaway")
    assert "takes more than" in str(failed.reason)
    assert platform.list_starts() == []
