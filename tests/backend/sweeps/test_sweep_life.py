"""Whatever happens to a sweep, in whatever order and with whatever deaths, no run is lost or begun twice."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from trellis_api import tables
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import service as jobs_service
from trellis_api.models.models import Model
from trellis_api.sweeps import repository, service
from trellis_api.sweeps.advance import advance
from trellis_api.sweeps.errors import SweepFinished, SweepNotRunning, SweepRunning
from trellis_api.sweeps.schemas import SweepCreate
from trellis_api.sweeps.states import UNDER_WAY
from trellis_contracts.states import ACTIVE, JobState
from trellis_testing.datasets import add_dataset
from trellis_testing.sweeps import METRIC, SweepRig

MODEL = "mdl_aaaaaaaaaaaa"
RUNS, PARALLEL = 6, 2


class Died(Exception):
    """The worker, before its commit."""


class SweepLife(RuleBasedStateMachine):
    """A sweep of three trials with two seeds each; persons, jobs and workers do what they like."""

    #: Runs that a person resumed beside the sweep, which are not held to its number at a time.
    by_hand = 0
    has_succeeded = False

    @initialize(method=st.sampled_from(["grid", "random", "bayesian", "asha"]))
    def submit(self, method: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        options: dict[str, Any] = {"platform": "cpu", "slots": 4, "min_free_disk_bytes": 0}
        self.settings = Settings(data_root=root, database_url=None, redis_url=None, **options)
        self.database = Database(self.settings)
        tables.metadata.create_all(self.database.engine)
        self.rig = SweepRig(self.database, self.settings)
        with self.database.write() as session:
            session.add(
                Model(id=MODEL, name="m", state="ready", source={}, lineage={}, path="models/m", warnings=[])
            )
            dataset = add_dataset(session, self.settings)
        request = SweepCreate.model_validate(
            {
                "name": "s",
                "job": {"recipe": "grpo", "preset": "cpu-tiny", "model": MODEL, "dataset": dataset.id},
                "parameters": {"learning_rate": {"values": [1e-6, 1e-5, 1e-4]}},
                "seeds": [1, 2],
                "search": {"method": method},
                "budget": {"runs": RUNS},
                "objective": {"metric": METRIC},
                "parallel": PARALLEL,
                "early_stop": {"rule": "asha", "min_steps": 2, "min_runs": 2} if method == "asha" else None,
            }
        )
        with self.database.write() as session:
            self.sweep_id = service.create(session, self.settings, request=request).id

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.dispose()
            self.folder.cleanup()

    @rule()
    def look(self) -> None:
        self.rig.look()

    @rule()
    def a_worker_dies_in_the_middle_of_a_look(self) -> None:
        before = [(run.index, run.job_id) for run in self.rig.runs(self.sweep_id)], len(self.rig.jobs())
        try:
            with self.database.write() as session:
                advance(session, self.settings, sweep_id=self.sweep_id)
                raise Died
        except Died:
            pass
        after = [(run.index, run.job_id) for run in self.rig.runs(self.sweep_id)], len(self.rig.jobs())
        assert after == before

    @rule(place=st.integers(0, 3), step=st.integers(1, 6), value=st.floats(0, 9))
    def a_job_measures(self, place: int, step: int, value: float) -> None:
        active = self.rig.active()
        if active:
            job = active[place % len(active)]
            if job.state in (JobState.QUEUED, JobState.LAUNCHING):
                self.rig.start(job.id)
            self.rig.measure(job.id, step, value)

    @rule(
        place=st.integers(0, 3),
        state=st.sampled_from([JobState.SUCCEEDED, JobState.FAILED, JobState.CRASHED, JobState.STOPPED]),
    )
    def a_job_ends(self, place: int, state: JobState) -> None:
        active = self.rig.active()
        if active:
            self.rig.end(active[place % len(active)].id, state)

    @rule()
    def stop(self) -> None:
        try:
            with self.database.write() as session:
                service.stop(session, sweep_id=self.sweep_id)
        except SweepNotRunning:
            return

    @rule()
    def resume(self) -> None:
        try:
            with self.database.write() as session:
                service.resume(session, self.settings, sweep_id=self.sweep_id)
        except (SweepRunning, SweepFinished):
            return

    @rule(place=st.integers(0, RUNS))
    def a_person_resumes_a_run_by_hand(self, place: int) -> None:
        jobs = [job for job in self.rig.jobs() if job.state in jobs_service.RESUMABLE]
        if jobs:
            with self.database.write() as session:
                job_id = jobs[place % len(jobs)].id
                jobs_service.resume(session, job_id=job_id, data_root=self.settings.data_root)
            self.by_hand += 1

    @precondition(lambda self: hasattr(self, "database"))
    @invariant()
    def a_sweep_that_has_succeeded_stays_so(self) -> None:
        with self.database.read() as session:
            state = service.get_sweep(session, sweep_id=self.sweep_id).state
        assert state == "succeeded" or not self.has_succeeded
        self.has_succeeded = state == "succeeded"

    @precondition(lambda self: hasattr(self, "database"))
    @invariant()
    def every_run_has_one_job_and_every_job_one_run(self) -> None:
        runs = self.rig.runs(self.sweep_id)
        assert [run.index for run in runs] == list(range(len(runs)))
        assert len(runs) <= RUNS
        jobs = [run.job_id for run in runs if run.job_id]
        assert len(set(jobs)) == len(jobs)
        assert {job.id for job in self.rig.jobs()} == set(jobs)
        assert len({(run.trial, run.seed) for run in runs}) == len(runs)

    @precondition(lambda self: hasattr(self, "database"))
    @invariant()
    def no_more_run_at_a_time_than_asked_for(self) -> None:
        assert len(self.rig.active()) <= PARALLEL + self.by_hand

    @precondition(lambda self: hasattr(self, "database"))
    @rule()
    def left_alone_it_comes_to_an_end(self) -> None:
        for _ in range(4 * RUNS):
            self.rig.look()
            for job in self.rig.active():
                self.rig.start(job.id)
                self.rig.measure(job.id, 7, 1.0)
                self.rig.end(job.id, JobState.SUCCEEDED)
        with self.database.read() as session:
            sweep = service.get_sweep(session, sweep_id=self.sweep_id)
            assert sweep.state not in UNDER_WAY
            assert not sweep.is_active
            assert repository.list_unsettled(session) == []
        assert not any(job.state in ACTIVE for job in self.rig.jobs())
        if sweep.state == "succeeded":
            assert len(self.rig.runs(self.sweep_id)) == RUNS


TestSweepLife = SweepLife.TestCase
TestSweepLife.settings = settings(
    max_examples=8, stateful_step_count=16, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
