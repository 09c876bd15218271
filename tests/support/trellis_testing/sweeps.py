"""Sweeps whose jobs measure and end as a test says: nothing trains, everything else is the platform's own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import Job
from trellis_api.sweeps import repository
from trellis_api.sweeps.advance import Look, advance_in
from trellis_api.sweeps.models import SweepRun
from trellis_contracts.states import ACTIVE, JobState

METRIC = "val/loss"


@dataclass
class SweepRig:
    """Hands to look at sweeps with, and to move what they run."""

    database: Database
    settings: Settings

    def look(self) -> Look:
        """Look once, as the worker does, at all sweeps in progress."""
        found = Look()
        with self.database.read() as session:
            unsettled = repository.list_unsettled(session)
        for sweep_id in unsettled:
            one = advance_in(self.database.write, self.settings, sweep_id=sweep_id)
            found.has_queued |= one.has_queued
            found.stopping += one.stopping
        return found

    def runs(self, sweep_id: str) -> list[SweepRun]:
        with self.database.read() as session:
            return repository.list_runs(session, sweep_id=sweep_id)

    def jobs(self) -> list[Job]:
        with self.database.read() as session:
            return list(session.exec(select(Job).order_by(col(Job.created_at), col(Job.id))))

    def active(self) -> list[Job]:
        return [job for job in self.jobs() if job.state in ACTIVE]

    def start(self, job_id: str) -> None:
        """Let a queued job run."""
        with self.database.write() as session:
            claim = service.claim_for_launch(session, job_id=job_id)
            if claim is not None:
                attempt = _attempt(session, claim.job)
                service.mark_running(session, job=claim.job, attempt=attempt)

    def measure(self, job_id: str, step: int, value: float, key: str = METRIC) -> None:
        """Report one value."""
        with self.database.write() as session:
            job = service.get_locked_job(session, job_id=job_id)
            metric_store.write(session, job=job, metrics=[(step, {key: value})])
            job.step = max(job.step, step)
            session.add(job)

    def end(self, job_id: str, state: JobState = JobState.SUCCEEDED, **why: Any) -> None:
        """Let a job end as the reconciler would settle it."""
        self.start(job_id)
        with self.database.write() as session:
            job = service.get_job(session, job_id=job_id)
            service.settle(session, job_id=job_id, attempt=job.attempt, state=state, **why)

    def run_through(self, sweep_id: str, judge: Callable[[SweepRun], float]) -> None:
        """Let every run measure what ``judge`` says at step 1 and succeed, until nothing begins any more."""
        for _ in range(200):
            self.look()
            own = {run.job_id: run for run in self.runs(sweep_id)}
            active = [job for job in self.active() if job.id in own]
            if not active:
                return
            for job in active:
                self.start(job.id)
                self.measure(job.id, 1, judge(own[job.id]))
                self.end(job.id)
        raise AssertionError("the sweep does not end")


def _attempt(session: Session, job: Job) -> Any:
    from trellis_api.jobs.repository import find_attempt

    attempt = find_attempt(session, job_id=job.id, number=job.attempt)
    assert attempt is not None
    return attempt
