"""Checkpoints that are due become evaluations, once whatever dies; their scores come back to the training."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import col, select
from trellis_api.core.columns import utc_now
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations import service as evaluation_service
from trellis_api.evaluations import training
from trellis_api.evaluations.models import TRAINING, Evaluation
from trellis_api.jobs import service
from trellis_api.jobs.evaluating import due, repository
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.models import EVALUATE, Attempt, Checkpoint, Job
from trellis_contracts import tasks
from trellis_contracts.attempt import STOP_FILE
from trellis_contracts.evaluation import BenchmarkResult, Score, VerdictCounts
from trellis_contracts.states import JobState
from trellis_workers.core.configuration import build_configuration
from trellis_workers.evaluations.queue_due import queue_due
from trellis_workers.jobs.prune import prune_checkpoints
from trellis_workers.jobs.settle import settle
from trellis_workers.jobs.verdict import Settlement

KEY = "eval/gsm8k/flexible"
#: Queues what is due; is killed when a transaction of it, or a part of one, is about to commit.
SWEEP_AND_DIE = """
import os, signal
from sqlalchemy import event
from sqlmodel import Session
from trellis_workers.evaluations.queue_due import queue_due

left = int({left!r})

def die(session):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

event.listen(Session, "before_commit", die)
queue_due()
"""


def ask(**changes: Any) -> dict[str, Any]:
    order = {"benchmark": "gsm8k", "label": "gsm8k", "limit": 10}
    return {"benchmarks": [order], "every_steps": 10, "at_end": True, **changes}


def add_training(platform: Any, *, steps: tuple[int, ...] = (10, 20), **values: Any) -> Job:
    """A running training with checkpoints."""
    job: Job = platform.add_job(**{"evaluate": ask(), "state": JobState.RUNNING, "priority": 3, **values})
    with platform.write() as session:
        session.add(Attempt(job_id=job.id, number=1, started_at=utc_now(), heartbeat_at=utc_now()))
    platform.attempt_dir(job).mkdir(parents=True)
    for step in steps:
        folder = platform.settings.checkpoint_dir(job.id) / f"global_step_{step}"
        folder.mkdir(parents=True)
        row = Checkpoint(
            job_id=job.id, step=step, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now()
        )
        with platform.write() as session:
            session.add(row)
            session.flush()
            current = service.get_locked_job(session, job_id=job.id)
            current.step = max(current.step, step)
            due.note_checkpoint(session, job=current, checkpoint=row)
    found: Job = platform.get_job(job.id)
    return found


def list_due(platform: Any, job: Job) -> dict[int, tuple[str, str | None]]:
    with platform.read() as session:
        return {row.step: (row.state, row.problem) for row in repository.list_due(session, job_id=job.id)}


def list_evaluations(platform: Any) -> list[Evaluation]:
    with platform.read() as session:
        return list(session.exec(select(Evaluation).order_by(col(Evaluation.target_step))))


def finish(platform: Any, evaluation: Evaluation, value: float) -> None:
    """The evaluation's run has ended well, and its results are recorded."""
    result = BenchmarkResult(
        label="gsm8k",
        benchmark="gsm8k",
        headline="flexible",
        scores=[Score(metric="flexible", value=value, n=10)],
        counts=VerdictCounts(),
        problems=10,
    )
    with platform.write() as session:
        assert service.claim_for_launch(session, job_id=evaluation.job_id)
        assert service.settle(session, job_id=evaluation.job_id, attempt=1, state=JobState.SUCCEEDED)
        row = evaluation_service.get_evaluation(session, evaluation_id=evaluation.id)
        row.results, row.recorded_at = [result.model_dump(mode="json")], utc_now()
        session.add(row)


def read_curve(platform: Any, job: Job) -> list[tuple[int, float | None]]:
    with platform.read() as session:
        current = service.get_job(session, job_id=job.id)
        curves = metric_query.read_curves(session, job=current, keys=[KEY], max_points=100)
    return [tuple(point) for curve in curves for point in curve.points]  # type: ignore[misc]


def sweep_in_a_process(platform: Any, source: str = "") -> "subprocess.Popen[bytes]":
    code = source or "from trellis_workers.evaluations.queue_due import queue_due; queue_due()"
    environment = {**os.environ, **platform.environment}
    return subprocess.Popen([sys.executable, "-c", code], env=environment)


def test_a_due_checkpoint_is_measured_behind_everything_else(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform)

    queue_due()
    queue_due()

    found = list_evaluations(platform)
    assert [(row.target_job_id, row.target_step, row.trigger) for row in found] == [
        (job.id, 10, TRAINING),
        (job.id, 20, TRAINING),
    ]
    assert {state for state, _ in list_due(platform, job).values()} == {"queued"}
    carrier = platform.get_job(found[0].job_id)
    assert (carrier.kind, carrier.state, carrier.priority) == (EVALUATE, JobState.QUEUED, -7)


def test_workers_that_sweep_at_once_queue_each_checkpoint_once(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10, 20, 30))

    processes = [sweep_in_a_process(platform) for _ in range(2)]

    assert [process.wait(60) for process in processes] == [0, 0]
    assert [row.target_step for row in list_evaluations(platform)] == [10, 20, 30]
    assert len(list_due(platform, job)) == 3


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.faults
def test_a_worker_killed_at_any_commit_loses_and_doubles_nothing(
    install: Callable[..., Any], left: int
) -> None:
    platform = install()
    job = add_training(platform)

    process = sweep_in_a_process(platform, SWEEP_AND_DIE.format(left=left))
    ended = process.wait(60)
    queue_due()

    assert ended in {0, -signal.SIGKILL}
    assert [row.target_step for row in list_evaluations(platform)] == [10, 20]
    assert list_due(platform, job) == {10: ("queued", None), 20: ("queued", None)}


def test_scores_come_back_to_the_training_at_the_right_step(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform)
    queue_due()
    first, second = list_evaluations(platform)

    finish(platform, second, 0.75)
    queue_due()
    finish(platform, first, 0.5)
    queue_due()
    queue_due()

    assert read_curve(platform, job) == [(10, 0.5), (20, 0.75)]
    assert {state for state, _ in list_due(platform, job).values()} == {"recorded"}
    assert platform.get_job(job.id).state == JobState.RUNNING


def test_a_failed_evaluation_is_told_and_the_training_goes_on(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10,))
    queue_due()
    (evaluation,) = list_evaluations(platform)

    with platform.write() as session:
        service.claim_for_launch(session, job_id=evaluation.job_id)
    carrier = platform.get_job(evaluation.job_id)
    assert settle(carrier, Settlement(JobState.FAILED, 1, "It ran out of memory.", "out_of_memory"))
    queue_due()

    assert list_due(platform, job) == {10: ("failed", "It ran out of memory.")}
    assert platform.get_job(job.id).state == JobState.RUNNING


def test_a_failed_evaluation_that_succeeds_when_tried_again_counts(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10,))
    queue_due()
    (evaluation,) = list_evaluations(platform)
    with platform.write() as session:
        evaluation_service.cancel(session, evaluation_id=evaluation.id)
    queue_due()
    assert list_due(platform, job)[10][0] == "failed"

    with platform.write() as session:
        evaluation_service.retry(session, platform.settings, evaluation_id=evaluation.id)
        service.claim_for_launch(session, job_id=evaluation.job_id)
        service.settle(session, job_id=evaluation.job_id, attempt=2, state=JobState.SUCCEEDED)
        row = evaluation_service.get_evaluation(session, evaluation_id=evaluation.id)
        score = {"metric": "flexible", "value": 0.5, "n": 10}
        row.results = [
            {
                "label": "gsm8k", "benchmark": "gsm8k", "headline": "flexible",
                "scores": [score], "counts": {}, "problems": 10,
            }
        ]  # fmt: skip
        row.recorded_at = utc_now()
        session.add(row)
    queue_due()

    assert list_due(platform, job) == {10: ("recorded", None)}
    assert read_curve(platform, job) == [(10, 0.5)]


def test_a_deleted_evaluation_is_not_asked_for_again(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10,))
    queue_due()
    (evaluation,) = list_evaluations(platform)
    with platform.write() as session:
        evaluation_service.cancel(session, evaluation_id=evaluation.id)
        evaluation_service.delete(session, evaluation_id=evaluation.id)

    queue_due()
    queue_due()

    assert list_evaluations(platform) == []
    assert list_due(platform, job) == {10: ("failed", "The evaluation was deleted.")}


def test_a_checkpoint_that_is_gone_fails_its_evaluation_alone(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform)
    (platform.settings.checkpoint_dir(job.id) / "global_step_10").rmdir()

    queue_due()

    found = list_due(platform, job)
    assert found[10][0] == "failed"
    assert "are missing" in str(found[10][1])
    assert found[20] == ("queued", None)
    assert platform.get_job(job.id).state == JobState.RUNNING


def test_what_nobody_foresaw_holds_up_no_other_checkpoint(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job = add_training(platform)
    queue = training.queue

    def break_once(*args: Any, step: int, **rest: Any) -> Any:
        if step == 10:
            raise ZeroDivisionError
        return queue(*args, step=step, **rest)

    monkeypatch.setattr(training, "queue", break_once)

    queue_due()

    found = list_due(platform, job)
    assert (found[10][0], found[20][0]) == ("failed", "queued")
    assert "workers' log" in str(found[10][1])


def test_a_plateau_tells_the_run_to_stop(install: Callable[..., Any]) -> None:
    platform = install()
    rule = {"label": "gsm8k", "metric": "flexible", "patience": 1}
    job = add_training(platform, evaluate=ask(early_stop=rule))
    queue_due()
    first, second = list_evaluations(platform)
    finish(platform, first, 0.5)
    finish(platform, second, 0.5)

    queue_due()

    stopped = platform.get_job(job.id)
    assert (stopped.state, stopped.cause) == (JobState.STOPPING, "early_stopped")
    assert (platform.attempt_dir(job) / STOP_FILE).exists()
    assert settle(stopped, Settlement(JobState.STOPPED, 75))
    ended = platform.get_job(job.id)
    assert (ended.state, ended.cause) == (JobState.STOPPED, "early_stopped")


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.STOPPED])
def test_the_end_of_a_training_has_its_last_checkpoint_measured(
    install: Callable[..., Any], state: JobState
) -> None:
    platform = install()
    job = add_training(platform, steps=(10, 14), params={"keep_checkpoints": 1})

    settle(job, Settlement(state, 0))
    queue_due()
    prune_checkpoints()

    assert [row.target_step for row in list_evaluations(platform)] == [10, 14]
    kept = sorted(path.name for path in platform.settings.checkpoint_dir(job.id).iterdir())
    assert kept == ["global_step_10", "global_step_14"]


def test_measured_checkpoints_make_room_and_their_files_go(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10, 14), params={"keep_checkpoints": 1})
    queue_due()
    (evaluation,) = list_evaluations(platform)
    finish(platform, evaluation, 0.5)

    queue_due()
    prune_checkpoints()

    kept = [path.name for path in platform.settings.checkpoint_dir(job.id).iterdir()]
    assert kept == ["global_step_14"]


def test_a_resume_from_an_earlier_step_gives_later_evaluations_up(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10, 20, 30))
    settle(job, Settlement(JobState.STOPPED, 75))
    queue_due()
    with platform.write() as session:
        first = evaluations.list_active(session)
    assert len(first) == 3

    with platform.write() as session:
        service.resume(session, job_id=job.id, data_root=platform.settings.data_root, checkpoint_step=10)
    queue_due()

    states = {row.target_step: platform.get_job(row.job_id).state for row in list_evaluations(platform)}
    assert states == {10: JobState.QUEUED, 20: JobState.STOPPED, 30: JobState.STOPPED}
    assert list_due(platform, job) == {10: ("queued", None)}


def test_the_sweep_is_scheduled(install: Callable[..., Any]) -> None:
    install()

    scheduled = {each["task"] for each in build_configuration()["beat_schedule"].values()}

    assert tasks.QUEUE_EVALUATIONS in scheduled


def test_paths_stay_under_the_data_root(install: Callable[..., Any]) -> None:
    platform = install()
    job = add_training(platform, steps=(10,))
    outside = Path(platform.settings.data_root).parent / "elsewhere"
    outside.mkdir()
    with platform.write() as session:
        row = session.get(Checkpoint, (job.id, 10))
        row.path = str(outside)
        session.add(row)

    queue_due()

    assert list_due(platform, job)[10][0] == "failed"
    assert list_evaluations(platform) == []
