"""Real Celery workers, beat and Redis that die at bad moments: every job still runs, and runs once."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from trellis_contracts.states import JobState
from trellis_testing.waiting import wait_until

pytestmark = pytest.mark.faults


class Processes:
    """Celery processes of one installation, each in a session of its own."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{arguments[0]}.log").open("ab")
        app = "beat_app" if arguments[0] == "beat" else "app"
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", f"trellis_workers.core.{app}", *arguments],
            env=self._environment,
            cwd=self._folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._running.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        return self.start("worker", "--concurrency", "2", "--loglevel", "INFO", "--without-gossip")

    def start_beat(self) -> subprocess.Popen[bytes]:
        return self.start("beat", "--loglevel", "INFO")

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """SIGKILL, to the process and to its children."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._running.remove(process)

    def end_all(self) -> None:
        for process in list(self._running):
            self.kill(process)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Callable[[Any], Processes]]:
    made: list[Processes] = []

    def make(platform: Any) -> Processes:
        made.append(Processes({**os.environ, **platform.environment}, tmp_path))
        return made[-1]

    yield make
    for group in made:
        group.end_all()


def end_all_runs(platform: Any, jobs: list[Any]) -> None:
    for job in jobs:
        platform.end_run(job, 0)

    def are_settled() -> bool:
        return all(platform.get_job(job.id).state == JobState.SUCCEEDED for job in jobs)

    wait_until(are_settled, 45, "all jobs succeed")


def test_a_job_starts_exactly_once_though_workers_are_killed_while_they_launch(
    on_ray: Any, redis_server: Any, processes: Any
) -> None:
    platform = on_ray(TRELLIS_REDIS_URL=redis_server.url, TRELLIS_SLOTS="4", TRELLIS_LAUNCH_TIMEOUT_S="2")
    celery = processes(platform)
    celery.start_beat()
    jobs = [platform.add_job() for _ in range(4)]
    dice = random.Random(7)

    def has_begun() -> bool:
        return any(platform.get_job(job.id).state != JobState.QUEUED for job in jobs)

    for _ in range(3):
        worker = celery.start_worker()
        wait_until(has_begun, 45, "a job is claimed", pause_s=0.002)
        time.sleep(dice.uniform(0, 0.6))
        celery.kill(worker)
    celery.start_worker()
    wait_until(lambda: len(set(platform.list_starts())) == 4, 45, "all four jobs start")
    time.sleep(3)  # time for a second start, if there were to be one

    assert Counter(platform.list_starts()) == Counter(f"{job.id}-1" for job in jobs)
    end_all_runs(platform, jobs)


def test_the_worker_may_be_killed_right_after_it_claimed_a_job(
    on_ray: Any, redis_server: Any, processes: Any
) -> None:
    platform = on_ray(TRELLIS_REDIS_URL=redis_server.url, TRELLIS_LAUNCH_TIMEOUT_S="1")
    job = platform.add_job()
    celery = processes(platform)
    celery.start_beat()
    worker = celery.start_worker()

    def is_claimed() -> bool:
        return bool(platform.get_job(job.id).state == JobState.LAUNCHING)

    wait_until(is_claimed, 45, "the job is claimed", pause_s=0.001)
    celery.kill(worker)
    celery.start_worker()
    wait_until(platform.list_starts, 45, "the job starts")

    assert platform.list_starts() == [f"{job.id}-1"]
    end_all_runs(platform, [job])


def test_queued_jobs_start_though_redis_lost_everything(
    on_ray: Any, redis_server: Any, processes: Any
) -> None:
    platform = on_ray(TRELLIS_REDIS_URL=redis_server.url, TRELLIS_SLOTS="1")
    celery = processes(platform)
    celery.start_beat()
    celery.start_worker()
    first, second = platform.add_job(), platform.add_job()
    wait_until(lambda: platform.list_starts() == [f"{first.id}-1"], 45, "the first job starts")

    redis_server.stop()
    time.sleep(1)
    redis_server.start()
    platform.end_run(first, 0)
    wait_until(lambda: len(platform.list_starts()) == 2, 45, "the second job starts")

    assert platform.list_starts() == [f"{first.id}-1", f"{second.id}-1"]
    assert platform.get_job(first.id).state == JobState.SUCCEEDED
    end_all_runs(platform, [second])


def test_messages_do_not_pile_up_while_workers_are_away(
    on_ray: Any, redis_server: Any, processes: Any
) -> None:
    platform = on_ray(TRELLIS_REDIS_URL=redis_server.url)
    celery = processes(platform)
    celery.start_beat()
    broker = redis.Redis.from_url(redis_server.url)
    wait_until(lambda: broker.llen("celery") > 15, 45, "messages pile up")

    celery.start_worker()

    # Those that waited for longer than they are good for are dropped, not run.
    wait_until(lambda: broker.llen("celery") < 5, 45, "old messages are dropped")
