"""Whatever is done to jobs in whatever order, they move along the table and share the slots there are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlmodel import Session
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.jobs import repository, service
from trellis_api.jobs.events import service as events
from trellis_api.jobs.models import Job
from trellis_api.jobs.queue import admission
from trellis_contracts.states import ACTIVE, FINISHED, HOLDS_SLOTS, JobState

SLOTS = 3
EFFORT = effort(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_every_state_has_its_moves() -> None:
    assert set(service.ALLOWED_MOVES) == set(JobState)
    assert all(service.ALLOWED_MOVES[state] for state in ACTIVE)
    assert service.ALLOWED_MOVES[JobState.SUCCEEDED] == frozenset()


FORBIDDEN = [
    (current, wanted)
    for current in JobState
    for wanted in JobState
    if wanted not in service.ALLOWED_MOVES[current]
]


@pytest.mark.parametrize(("current", "wanted"), FORBIDDEN)
def test_a_move_that_is_not_in_the_table_is_refused(
    session: Session, make_job: Callable[..., str], current: JobState, wanted: JobState
) -> None:
    job = service.get_locked_job(session, job_id=make_job(state=current))

    with pytest.raises(DomainError) as error:
        service.move(session, job=job, to=wanted)

    assert error.value.code == "move_not_allowed"
    assert job.state == current


def test_any_sequence_of_requests_leaves_jobs_in_order(
    database: Database, settings: Settings, make_job: Callable[..., str]
) -> None:
    run_state_machine_as_test(lambda: Jobs(database, settings, make_job), settings=EFFORT)


class Jobs(RuleBasedStateMachine):
    """People, workers and runs act on jobs in any order."""

    jobs = Bundle("jobs")

    def __init__(self, database: Database, settings: Settings, make_job: Callable[..., str]) -> None:
        super().__init__()
        self.database = database
        self.platform = settings
        self.make_job = make_job
        self.own: set[str] = set()
        self.last: dict[str, JobState] = {}
        self.ends: dict[str, int] = {}

    @contextmanager
    def acting(self) -> Iterator[Session]:
        try:
            with self.database.write() as session:
                yield session
        except DomainError as error:
            assert error.status in {404, 409}  # noqa: PT017 - any act may be refused

    @rule(target=jobs, gpus=st.integers(1, SLOTS), priority=st.integers(-1, 1))
    def submit(self, gpus: int, priority: int) -> str:
        job_id = self.make_job(gpus=gpus, priority=priority)
        self.own.add(job_id)
        return job_id

    @rule()
    def launch(self) -> None:
        with self.acting() as session:
            waiting = [job for job in repository.list_queued(session) if job.id in self.own]
            claim = admission.claim_next(session, total_slots=SLOTS, max_exports=1)
            if claim is not None:
                assert claim.job.id == waiting[0].id
                assert claim.submission_id == f"{claim.job.id}-{claim.job.attempt}"

    @rule(job_id=jobs)
    def give_sign_of_life(self, job_id: str) -> None:
        with self.acting() as session:
            job = service.get_locked_job(session, job_id=job_id)
            attempt = repository.find_attempt(session, job_id=job_id, number=job.attempt)
            if attempt is not None:
                service.mark_running(session, job=job, attempt=attempt)

    @rule(job_id=jobs)
    def stop(self, job_id: str) -> None:
        with self.acting() as session:
            service.request_stop(session, job_id=job_id)

    @rule(job_id=jobs, state=st.sampled_from(sorted(FINISHED)), is_late=st.booleans())
    def settle(self, job_id: str, state: JobState, is_late: bool) -> None:
        with self.acting() as session:
            job = session.get(Job, job_id)
            if job is None:
                return
            before = job.state
            number = job.attempt - is_late
            if service.settle(session, job_id=job_id, attempt=number, state=state):
                assert before in ACTIVE
                assert not is_late
                # The second settlement changes nothing.
                assert not service.settle(session, job_id=job_id, attempt=number, state=JobState.CRASHED)

    @rule(job_id=jobs)
    def resume(self, job_id: str) -> None:
        with self.acting() as session:
            before = session.get(Job, job_id)
            attempt = before.attempt if before else 0
            job = service.resume(session, job_id=job_id, data_root=self.platform.data_root)
            assert job.attempt == attempt + 1

    @rule(job_id=jobs)
    def delete(self, job_id: str) -> None:
        with self.acting() as session:
            service.delete_job(session, job_id=job_id)
            assert self.last.get(job_id, JobState.QUEUED) in FINISHED
            self.own.discard(job_id)
            self.last.pop(job_id, None)

    @invariant()
    def jobs_are_in_order(self) -> None:
        with self.database.read() as session:
            rows = [job for job_id in self.own if (job := session.get(Job, job_id)) is not None]
            assert len(rows) == len(self.own)
            assert sum(job.gpus for job in rows if job.state in HOLDS_SLOTS) <= SLOTS
            for job in rows:
                assert (job.finished_at is not None) == (job.state in FINISHED)
                told = events.list_events(session, job_id=job.id, after=0, limit=10_000)
                assert [event.sequence for event in told] == list(range(1, job.event_count + 1))
                states = [event.payload["state"] for event in told if event.kind == "state"]
                path = [JobState.QUEUED, *map(JobState, states)]
                for current, following in pairwise(path):
                    assert following in service.ALLOWED_MOVES[current]
                assert path[-1] == job.state
                self.last[job.id] = job.state

    def teardown(self) -> None:
        with self.database.write() as session:
            for job_id in self.own:
                repository.delete_job(session, job_id=job_id)
