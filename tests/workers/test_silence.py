"""Runs that Ray sees running and that have frozen; and healthy ones that only look so."""

import errno
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.ingest.service import ingest_batch
from trellis_api.jobs import repository
from trellis_api.jobs.queue import admission
from trellis_contracts.attempt import BEAT_FILE
from trellis_contracts.events import IngestBatch, ProgressEvent
from trellis_contracts.states import JobState
from trellis_testing.processes import is_running
from trellis_testing.waiting import wait_until
from trellis_workers.core.ray_client import RayJob, RayJobs, RayStatus, get_ray
from trellis_workers.jobs import silence
from trellis_workers.jobs.launch import launch_queued
from trellis_workers.jobs.reconcile import reconcile


class Clock:
    """The time that the watch goes by."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now


class Cluster:
    """A Ray that says what it is told, and notes what it is asked to end."""

    def __init__(self) -> None:
        self.status = RayStatus.RUNNING
        self.stopped: list[str] = []
        self.obeys = True

    def find(self, submission_id: str) -> RayJob:
        return RayJob(submission_id, self.status, None, "", {})

    def stop(self, submission_id: str) -> None:
        self.stopped.append(submission_id)
        if self.obeys:
            self.status = RayStatus.STOPPED


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(silence, "time", clock)
    return clock


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(RayJobs, "find", lambda _, submission_id: cluster.find(submission_id))
    monkeypatch.setattr(RayJobs, "stop", lambda _, submission_id: cluster.stop(submission_id))
    monkeypatch.setattr(RayJobs, "list_unfinished", lambda _: [])
    return cluster


def add_running(platform: Any, *, heard_s_ago: float | None = 20.0) -> Any:
    """A job whose run was heard last so many seconds ago, and touched its file then."""
    job = platform.add_job()
    with platform.write() as session:
        admission.claim_next(session, total_slots=1, max_exports=1)
    platform.attempt_dir(job).mkdir(parents=True)
    if heard_s_ago is None:
        return platform.get_job(job.id)
    event = ProgressEvent(time=datetime.now(UTC), phase="training", step=3)
    with platform.write() as session:
        ingest_batch(session, job_id=job.id, batch=IngestBatch(attempt=1, sequence=1, events=[event]))
        attempt = repository.find_attempt(session, job_id=job.id, number=1)
        assert attempt is not None
        attempt.heartbeat_at = utc_now() - timedelta(seconds=heard_s_ago)
    beat(platform, job)
    return platform.get_job(job.id)


def beat(platform: Any, job: Any) -> None:
    file = platform.attempt_dir(job) / BEAT_FILE
    file.touch()
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))  # clocks of file systems are coarse


def sweep(
    clock: Clock, seconds: float, *, every_s: float = 5.0, before: Callable[[], None] | None = None
) -> None:
    """Reconcile for so long."""
    for _ in range(round(seconds / every_s)):
        clock.now += every_s
        if before is not None:
            before()
        reconcile()


def test_a_frozen_run_is_ended_and_settled_and_its_slot_is_free(
    install: Any, clock: Clock, cluster: Cluster
) -> None:
    platform = install()
    job = add_running(platform)

    sweep(clock, 50)
    after_50_s = platform.get_job(job.id).state
    sweep(clock, 120 - 50 - silence.SUSPECT_AFTER_S)

    settled = platform.get_job(job.id)
    assert after_50_s == JobState.RUNNING
    assert (settled.state, settled.cause) == (JobState.CRASHED, "frozen")
    assert "hung for more than a minute" in settled.reason
    assert cluster.stopped == [f"{job.id}-1"]
    with platform.read() as session:
        assert repository.count_held_slots(session) == 0


def test_a_frozen_run_is_ended_and_settled_while_the_disk_is_full(
    install: Any, clock: Clock, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, f"No space left for {len(text)} characters", str(path))

    platform = install()
    job = add_running(platform)
    monkeypatch.setattr(silence, "write_private", fail)

    sweep(clock, 120 - silence.SUSPECT_AFTER_S)

    assert platform.get_job(job.id).cause == "frozen"
    assert cluster.stopped == [f"{job.id}-1"]


def test_one_that_ray_cannot_end_is_given_up_within_two_minutes(
    install: Any, clock: Clock, cluster: Cluster
) -> None:
    platform = install()
    job = add_running(platform)
    cluster.obeys = False

    sweep(clock, 120 - silence.SUSPECT_AFTER_S)

    assert platform.get_job(job.id).cause == "frozen"
    assert cluster.stopped


def test_a_healthy_run_goes_on_however_long_the_api_is_away(
    install: Any, clock: Clock, cluster: Cluster
) -> None:
    platform = install()
    job = add_running(platform, heard_s_ago=3_000)

    sweep(clock, 300, before=lambda: beat(platform, job))

    assert platform.get_job(job.id).state == JobState.RUNNING
    assert not cluster.stopped


def test_a_run_that_the_api_hears_is_not_watched(install: Any, clock: Clock, cluster: Cluster) -> None:
    platform = install()
    job = add_running(platform, heard_s_ago=0)

    sweep(clock, 100)

    assert platform.get_job(job.id).state == JobState.RUNNING
    assert silence.read_silence(job) is None


@pytest.mark.parametrize("jump_s", [3_600, -3_600])
def test_a_machine_that_slept_or_a_clock_that_jumped_makes_no_run_look_frozen(
    jump_s: int, install: Any, clock: Clock, cluster: Cluster
) -> None:
    platform = install()
    job = add_running(platform)
    sweep(clock, 30)

    clock.now += jump_s
    sweep(clock, 10)

    assert platform.get_job(job.id).state == JobState.RUNNING
    assert not cluster.stopped


def test_a_short_standstill_is_forgotten(install: Any, clock: Clock, cluster: Cluster) -> None:
    platform = install()
    job = add_running(platform)

    for _ in range(4):
        sweep(clock, 40)
        beat(platform, job)

    assert platform.get_job(job.id).state == JobState.RUNNING


def test_a_run_of_an_earlier_version_without_such_a_file_is_left_alone(
    install: Any, clock: Clock, cluster: Cluster
) -> None:
    platform = install()
    job = add_running(platform)
    (platform.attempt_dir(job) / BEAT_FILE).unlink()

    sweep(clock, 100)

    assert platform.get_job(job.id).state == JobState.RUNNING


def test_a_run_that_never_began_is_ended_after_five_minutes(
    install: Any, clock: Clock, cluster: Cluster
) -> None:
    platform = install()
    job = add_running(platform, heard_s_ago=None)

    sweep(clock, 290, every_s=10)
    at_first = platform.get_job(job.id).state
    sweep(clock, 40, every_s=10)

    assert at_first == JobState.LAUNCHING
    assert platform.get_job(job.id).cause == "frozen"


@pytest.mark.faults
def test_a_stopped_process_is_settled_killed_and_makes_room(
    on_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGSTOP on a real cluster; the bounds are shortened, their sum is tested above."""
    import psutil

    monkeypatch.setattr(silence, "SUSPECT_AFTER_S", 0.5)
    monkeypatch.setattr(silence, "FROZEN_AFTER_S", 2.0)
    platform = on_ray(TRELLIS_SLOTS="1")
    first, second = platform.add_job(), platform.add_job()
    launch_queued()
    wait_until(lambda: (platform.attempt_dir(first) / "pid").exists(), 60, "the run notes its pid")
    process = psutil.Process(int((platform.attempt_dir(first) / "pid").read_text()))
    event = ProgressEvent(time=datetime.now(UTC), phase="training", step=1)
    with platform.write() as session:
        ingest_batch(session, job_id=first.id, batch=IngestBatch(attempt=1, sequence=1, events=[event]))
    beat(platform, first)
    process.send_signal(signal.SIGSTOP)

    def is_settled() -> bool:
        time.sleep(0.3)
        reconcile()
        return platform.get_job(first.id).finished_at is not None

    wait_until(is_settled, 60, "the frozen run is settled")
    launch_queued()
    wait_until(lambda: len(platform.list_starts()) == 2, 60, "the next job starts")

    settled = platform.get_job(first.id)
    assert (settled.state, settled.cause) == (JobState.CRASHED, "frozen")
    assert not is_running(process)
    assert platform.list_starts() == [f"{first.id}-1", f"{second.id}-1"]
    platform.end_run(second, 0)
    wait_until(lambda: get_ray().find(f"{second.id}-1").exit_code == 0, 60, "the next job ends")
