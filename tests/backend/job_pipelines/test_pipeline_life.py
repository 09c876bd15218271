"""Whatever happens to a pipeline, in whatever order, its stages keep to the rules."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from trellis_api import tables
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.job_pipelines import service
from trellis_api.job_pipelines.advance import advance
from trellis_api.job_pipelines.errors import JobPipelineNotRunning, JobPipelineRunning, StageNotReady
from trellis_api.job_pipelines.schemas import JobPipelineCreate, StageCreate
from trellis_api.job_pipelines.states import (
    DONE,
    PipelineState,
    StageState,
    find_behind,
    find_blocked,
    find_cycle,
    find_startable,
    of_pipeline,
)
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_contracts.states import ACTIVE, JobState
from trellis_testing.datasets import add_dataset
from trellis_testing.job_pipelines import PipelineRig

NAMES = ("a", "b", "c", "d")
MODEL = "mdl_aaaaaaaaaaaa"


class Died(Exception):
    """The worker, before its commit."""


class PipelineLife(RuleBasedStateMachine):
    """A pipeline of four stages with random needs; persons and jobs do what they like."""

    @initialize(
        needs=st.tuples(
            *(
                st.sets(st.sampled_from(NAMES[:index]), max_size=2) if index else st.just(set[str]())
                for index in range(len(NAMES))
            )
        )
    )
    def submit(self, needs: tuple[set[str], ...]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        options: dict[str, Any] = {"platform": "cpu", "slots": 4, "min_free_disk_bytes": 0}
        self.settings = Settings(data_root=root, database_url=None, redis_url=None, **options)
        self.database = Database(self.settings)
        tables.metadata.create_all(self.database.engine)
        self.rig = PipelineRig(self.database, self.settings)
        self.needs = {name: sorted(found) for name, found in zip(NAMES, needs, strict=True)}
        self.begun = 0
        with self.database.write() as session:
            session.add(
                Model(id=MODEL, name="m", state="ready", source={}, lineage={}, path="models/m", warnings=[])
            )
            dataset = add_dataset(session, self.settings)
        stages = [
            StageCreate.model_validate(
                {"id": name, "recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset.id, "exports": False,
                 "model": {"base": MODEL}, "needs": self.needs[name], "seed": index}
            )
            for index, name in enumerate(NAMES)
        ]  # fmt: skip
        with self.database.write() as session:
            request = JobPipelineCreate(name="p", stages=stages)
            self.pipeline_id = service.create(session, self.settings, request=request).id

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.dispose()
            self.folder.cleanup()

    def states(self) -> dict[str, StageState]:
        return {name: StageState(state) for name, state in self.rig.states(self.pipeline_id).items()}

    @rule()
    def look(self) -> None:
        self.rig.look()

    @rule()
    def a_worker_dies_in_the_middle_of_a_look(self) -> None:
        before, jobs = self.states(), len(self.rig.list_jobs())
        try:
            with self.database.write() as session:
                advance(session, self.settings, pipeline_id=self.pipeline_id)
                raise Died
        except Died:
            pass
        assert (self.states(), len(self.rig.list_jobs())) == (before, jobs)

    @rule(
        index=st.integers(0, 3),
        state=st.sampled_from([JobState.SUCCEEDED, JobState.FAILED, JobState.CRASHED, JobState.STOPPED]),
    )
    def a_job_ends(self, index: int, state: JobState) -> None:
        active = [job for job in self.rig.list_jobs() if job.state in ACTIVE]
        if active:
            self.rig.end(active[index % len(active)].id, state)

    @rule()
    def stop(self) -> None:
        try:
            with self.database.write() as session:
                service.stop(session, pipeline_id=self.pipeline_id)
        except JobPipelineNotRunning:
            return

    @rule()
    def start(self) -> None:
        try:
            with self.database.write() as session:
                service.start(session, pipeline_id=self.pipeline_id)
        except JobPipelineRunning:
            return

    @rule(name=st.sampled_from(NAMES))
    def rerun(self, name: str) -> None:
        try:
            with self.database.write() as session:
                service.rerun(session, pipeline_id=self.pipeline_id, stage_id=name)
        except (JobPipelineRunning, StageNotReady):
            return
        assert all(self.states()[each] is StageState.WAITING for each in find_behind(name, self.needs))

    @precondition(lambda self: hasattr(self, "database"))
    @invariant()
    def every_running_stage_has_a_job_of_its_own(self) -> None:
        stages = self.rig.stages(self.pipeline_id)
        running = [stage.job_id for stage in stages.values() if stage.state == StageState.RUNNING]
        assert None not in running
        assert len(set(running)) == len(running)
        active = {job.id for job in self.rig.list_jobs() if job.state in ACTIVE}
        assert active <= set(running), "a job runs that no stage knows of"

    @precondition(lambda self: hasattr(self, "database"))
    @invariant()
    def nothing_runs_before_what_it_needs_has_finished(self) -> None:
        states = self.states()
        for name, state in states.items():
            if state in (StageState.RUNNING, *DONE):
                assert all(states[need] in DONE for need in self.needs[name])

    @precondition(lambda self: hasattr(self, "database"))
    @invariant()
    def the_pipeline_is_what_its_stages_are(self) -> None:
        with self.database.read() as session:
            pipeline = service.get_pipeline(session, pipeline_id=self.pipeline_id)
        expected = of_pipeline(self.states().values(), is_active=pipeline.is_active)
        assert pipeline.state == expected or pipeline.is_active

    @precondition(lambda self: hasattr(self, "database"))
    @rule()
    def left_alone_it_comes_to_an_end(self) -> None:
        for _ in range(3 * len(NAMES)):
            self.rig.look()
            for job in self.rig.list_jobs():
                if job.state in ACTIVE:
                    self.rig.end(job.id, JobState.SUCCEEDED)
        with self.database.read() as session:
            pipeline = service.get_pipeline(session, pipeline_id=self.pipeline_id)
        assert pipeline.state in (PipelineState.SUCCEEDED, PipelineState.FAILED, PipelineState.STOPPED)
        assert not pipeline.is_active


TestPipelineLife = PipelineLife.TestCase
TestPipelineLife.settings = settings(
    max_examples=8, stateful_step_count=14, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.parametrize(
    ("states", "is_active", "expected"),
    [
        (["succeeded", "skipped"], True, "succeeded"),
        (["succeeded", "running"], True, "running"),
        (["succeeded", "running"], False, "stopping"),
        (["succeeded", "waiting"], False, "stopped"),
        (["failed", "blocked", "succeeded"], True, "failed"),
        (["stopped", "blocked"], True, "stopped"),
    ],
)
def test_a_pipeline_is_told_from_its_stages(states: list[str], is_active: bool, expected: str) -> None:
    assert of_pipeline(map(StageState, states), is_active=is_active) == expected


def test_blocking_reaches_through_and_starting_waits_for_all_needs() -> None:
    needs = {"a": [], "b": ["a"], "c": ["b", "d"], "d": [], "e": ["d"]}
    states = dict.fromkeys(needs, StageState.WAITING) | {
        "a": StageState.FAILED, "d": StageState.SKIPPED
    }  # fmt: skip

    assert find_blocked(states, needs) == ["b", "c"]
    assert find_startable(states, needs) == ["e"]
    assert find_behind("a", needs) == {"b", "c"}
    assert find_cycle(needs) == []
    assert set(find_cycle({"a": ["b"], "b": ["a"], "c": []})) == {"a", "b"}


def test_a_job_is_an_ordinary_one() -> None:
    """Nothing in a job's row says that a pipeline asked for it, so nothing treats it differently."""
    assert "pipeline" not in " ".join(Job.model_fields)
