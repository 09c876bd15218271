"""Settling runs that are over, however they ended, and ending those that nobody wants."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.ingest.service import ingest_batch
from trellis_api.jobs import repository, service
from trellis_api.jobs.alarms import stall
from trellis_api.jobs.events import service as events
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.queue import admission
from trellis_contracts.attempt import ADDRESS_FILE, EVENTS_FOLDER, KEY_FILES
from trellis_contracts.events import Event, IngestBatch, LogEvent, MetricsEvent, OutcomeEvent, ProgressEvent
from trellis_contracts.spool import SpoolReader
from trellis_contracts.states import JobState
from trellis_recipes.placement import ResourceDemand
from trellis_testing.waiting import wait_until
from trellis_workers.core.ray_client import OVER, get_ray
from trellis_workers.jobs import addresses
from trellis_workers.jobs import reconcile as reconcile_module
from trellis_workers.jobs.drain import drain_spool
from trellis_workers.jobs.launch import METADATA_ROOT, launch_queued
from trellis_workers.jobs.reconcile import reconcile
from trellis_workers.jobs.stop import request_stop


def start(platform: Any, **values: Any) -> Any:
    job = platform.add_job(**values)
    launch_queued()
    wait_until(lambda: (platform.attempt_dir(job) / "pid").exists(), 30, "the run notes its pid")
    return job


def reconcile_until_over(platform: Any, job: Any) -> Any:
    def is_over() -> bool:
        reconcile()
        return platform.get_job(job.id).finished_at is not None

    wait_until(is_over, 30, "the job is settled")
    return platform.get_job(job.id)


def write_spool(folder: Path, events: list[Event], producer: str = "trainer") -> None:
    (folder / EVENTS_FOLDER).mkdir(parents=True, exist_ok=True)
    with (folder / EVENTS_FOLDER / f"{producer}.1.jsonl").open("a") as file:
        file.writelines(event.model_dump_json() + "\n" for event in events)


def make_metrics(step: int) -> MetricsEvent:
    return MetricsEvent(time=datetime.now(UTC), step=step, values={"loss": float(step)})


def read_steps(platform: Any, job: Any) -> list[int]:
    now = platform.get_job(job.id)
    with platform.read() as session:
        curves = metric_query.read_curves(session, job=now, keys=["loss"], max_points=1_000)
    return [step for curve in curves for step, _ in curve.points]


@pytest.mark.parametrize(
    ("exit_code", "state"),
    [
        (0, JobState.SUCCEEDED),
        pytest.param(1, JobState.FAILED, marks=pytest.mark.slow),
        pytest.param(75, JobState.STOPPED, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_settled_by_its_exit_code(exit_code: int, state: JobState, on_ray: Any) -> None:
    platform = on_ray()
    job = start(platform)

    reconcile()
    while_it_runs = platform.get_job(job.id).state
    keys = [platform.attempt_dir(job) / name for name in KEY_FILES]
    for file in keys:
        file.write_text("{}")
    platform.end_run(job, exit_code)
    settled = reconcile_until_over(platform, job)

    assert while_it_runs == JobState.LAUNCHING
    assert (settled.state, settled.exit_code) == (state, exit_code)
    assert not [file.name for file in keys if file.exists()], "keys outlive their run"


@pytest.mark.faults
def test_a_killed_run_crashes_with_its_last_events_saved(on_ray: Any) -> None:
    platform = on_ray()
    job = start(platform)
    folder = platform.attempt_dir(job)
    write_spool(folder, [make_metrics(step) for step in range(1, 701)])
    with (folder / EVENTS_FOLDER / "trainer.1.jsonl").open("a") as file:
        file.write('{"kind": "metrics", "step": 701, "val')  # killed in the middle of a write
    killed_at = time.monotonic()

    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    settled = reconcile_until_over(platform, job)

    assert (settled.state, settled.cause) == (JobState.CRASHED, "killed")
    assert "signal 9" in settled.reason
    assert time.monotonic() - killed_at < 60
    assert read_steps(platform, job) == list(range(1, 701))


def test_the_reason_is_that_of_the_run_itself(on_ray: Any) -> None:
    platform = on_ray()
    job = start(platform)
    outcome = OutcomeEvent(
        time=datetime.now(UTC), outcome="failed", exit_code=1, reason="No column 'answer'.", cause="bad_data"
    )
    write_spool(platform.attempt_dir(job), [outcome], "entrypoint")

    platform.end_run(job, 1)
    settled = reconcile_until_over(platform, job)

    assert (settled.state, settled.reason, settled.cause) == (
        JobState.FAILED,
        "No column 'answer'.",
        "bad_data",
    )


def test_what_was_sent_before_is_not_taken_twice(install: Any) -> None:
    platform = install()
    job = platform.add_job()
    with platform.write() as session:
        admission.claim_next(session, total_slots=1, max_exports=1)
    folder = platform.attempt_dir(job)
    write_spool(folder, [make_metrics(1), make_metrics(2)])
    batch = SpoolReader(folder).next_batch()  # the run cut this batch and sent it, and then was killed
    assert batch is not None
    with platform.write() as session:
        ingest_batch(session, job_id=job.id, batch=IngestBatch(attempt=1, sequence=1, events=batch.events))
    write_spool(folder, [make_metrics(3)])
    write_spool(folder, [LogEvent(time=datetime.now(UTC), stream="stdout", lines=["bye"])], "entrypoint")

    drain_spool(folder, job_id=job.id, attempt=1)
    drain_spool(folder, job_id=job.id, attempt=1)

    assert read_steps(platform, job) == [1, 2, 3]
    assert platform.get_job(job.id).line_count == 1


@pytest.mark.faults
def test_a_run_that_ray_forgot_is_lost(on_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = on_ray()
    job = platform.add_job()
    with platform.write() as session:
        admission.claim_next(session, total_slots=1, max_exports=1)
    event = ProgressEvent(time=datetime.now(UTC), phase="training", step=3)
    with platform.write() as session:
        ingest_batch(session, job_id=job.id, batch=IngestBatch(attempt=1, sequence=1, events=[event]))

    reconcile()
    while_it_may_still_report = platform.get_job(job.id).state
    silence_over = utc_now() + timedelta(seconds=11)
    monkeypatch.setattr(service, "utc_now", lambda: silence_over)
    reconcile()

    settled = platform.get_job(job.id)
    assert while_it_may_still_report == JobState.RUNNING
    assert (settled.state, settled.cause) == (JobState.CRASHED, "node_lost")


def test_a_run_is_not_given_up_while_ray_is_away_for_a_moment(install: Any) -> None:
    platform = install(TRELLIS_HEARTBEAT_TIMEOUT_S="0.2")
    job = platform.add_job()
    with platform.write() as session:
        admission.claim_next(session, total_slots=1, max_exports=1)
    event = ProgressEvent(time=datetime.now(UTC), phase="training", step=3)
    with platform.write() as session:
        ingest_batch(session, job_id=job.id, batch=IngestBatch(attempt=1, sequence=1, events=[event]))
    reconcile_module._Clock.ray_away_since = None

    time.sleep(0.3)
    reconcile()
    at_first = platform.get_job(job.id).state
    time.sleep(0.3)
    reconcile()

    settled = platform.get_job(job.id)
    assert at_first == JobState.RUNNING
    assert (settled.state, settled.cause) == (JobState.CRASHED, "heartbeat_lost")


def test_a_stopping_run_is_told_and_leaves(on_ray: Any) -> None:
    platform = on_ray()
    job = start(platform)
    with platform.write() as session:
        service.request_stop(session, job_id=job.id)

    request_stop(job.id)
    settled = reconcile_until_over(platform, job)

    assert (settled.state, settled.exit_code) == (JobState.STOPPED, 75)


@pytest.mark.faults
def test_a_run_that_does_not_leave_is_ended_after_the_grace_period(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_STOP_GRACE_S="0.5")
    job = start(platform)
    (platform.attempt_dir(job) / "deaf").touch()
    pid = int((platform.attempt_dir(job) / "pid").read_text())
    with platform.write() as session:
        service.request_stop(session, job_id=job.id)

    settled = reconcile_until_over(platform, job)

    assert settled.state == JobState.STOPPED
    assert not Path(f"/proc/{pid}").exists()


def report_steps(platform: Any, job: Any, steps: range, *, sequence: int) -> None:
    """A batch as a run sends it, which is a sign of life too."""
    batch = IngestBatch(attempt=1, sequence=sequence, events=[make_metrics(step) for step in steps])
    with platform.write() as session:
        ingest_batch(session, job_id=job.id, batch=batch)


def stand_still(platform: Any, job: Any, *, heard_s_ago: float = 0) -> None:
    """As if its newest step had come long ago, and its last sign of life so many seconds ago."""
    with platform.write() as session:
        attempt = repository.find_attempt(session, job_id=job.id, number=job.attempt)
        assert attempt is not None
        assert attempt.watch is not None
        attempt.watch = {**attempt.watch, "seen_at": time.time() - 2 * stall.LONG_PHASE_FLOOR_S}
        attempt.heartbeat_at = utc_now() - timedelta(seconds=heard_s_ago)
        session.add(attempt)


def told_of_stalls(platform: Any, job: Any) -> list[bool]:
    """What the stream of the job said: raised, or over."""
    with platform.read() as session:
        rows = events.list_events(session, job_id=job.id, after=0, limit=1_000)
        alarms = [row.payload for row in rows if row.kind == "alarm"]
    assert all(alarm["code"] == "stalled" for alarm in alarms)
    return [alarm["is_active"] for alarm in alarms]


def test_a_run_that_lives_and_stands_still_is_told_once_until_its_next_step(on_ray: Any) -> None:
    platform = on_ray()
    job = start(platform)
    report_steps(platform, job, range(1, 6), sequence=1)

    reconcile()
    at_work = told_of_stalls(platform, job)
    stand_still(platform, job)
    reconcile()
    reconcile()
    standing, state = told_of_stalls(platform, job), platform.get_job(job.id).state
    report_steps(platform, job, range(6, 7), sequence=2)
    reconcile()

    assert at_work == []
    assert (standing, state) == ([True], JobState.RUNNING)
    assert told_of_stalls(platform, job) == [True, False]
    platform.end_run(job, 0)


def test_a_run_that_is_not_heard_or_is_to_stop_does_not_stand_still(on_ray: Any) -> None:
    """Silence is what heartbeats are for, and a run that saves before it leaves makes no steps."""
    platform = on_ray()
    job = start(platform)
    report_steps(platform, job, range(1, 6), sequence=1)

    stand_still(platform, job, heard_s_ago=2 * platform.settings.heartbeat_timeout_s)
    reconcile()
    unheard = told_of_stalls(platform, job)
    with platform.write() as session:
        service.request_stop(session, job_id=job.id)
    stand_still(platform, job)
    reconcile()

    assert platform.get_job(job.id).state == JobState.STOPPING
    assert unheard == told_of_stalls(platform, job) == []
    platform.end_run(job, 0)


@pytest.mark.slow
def test_a_run_without_a_job_is_ended(on_ray: Any) -> None:
    platform = on_ray()
    ray = get_ray()
    ours = {METADATA_ROOT: str(platform.settings.data_root)}
    asked = {"entrypoint": "exec sleep 300", "demand": ResourceDemand(1, 0), "env": {}}
    ray.submit("job_gone-1", **asked, metadata=ours)
    ray.submit("job_of_others-1", **asked, metadata={METADATA_ROOT: "/elsewhere"})

    def is_ended() -> bool:
        reconcile_module._Clock.orphans_at = 0
        reconcile()
        return ray.find("job_gone-1").status in OVER

    wait_until(is_ended, 30, "the run without a job is over")

    assert ray.find("job_of_others-1").status not in OVER
    ray.stop("job_of_others-1")


def test_a_run_under_way_is_told_where_the_api_has_moved(
    on_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = on_ray()
    job = start(platform)
    folder = platform.attempt_dir(job)
    (folder / ADDRESS_FILE).symlink_to(folder / "elsewhere")

    reconcile()
    before = (folder / ADDRESS_FILE).read_text()
    monkeypatch.setattr(addresses, "get_settings", lambda: moved)
    moved = platform.settings.model_copy(update={"public_url": "http://127.0.0.1:4711"})
    reconcile()

    assert before == f"{platform.settings.base_url}\n"
    assert (folder / ADDRESS_FILE).read_text() == "http://127.0.0.1:4711\n"
    assert not (folder / "elsewhere").exists()
    platform.end_run(job, 0)
    reconcile_until_over(platform, job)
