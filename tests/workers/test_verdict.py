"""How an attempt is settled, from what Ray, the exit code and the run itself say."""

from typing import Any

import pytest
from trellis_api.jobs.models import Attempt, Job
from trellis_contracts.isolation import EXIT_NOT_ISOLATED
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_CRASHED, EXIT_STOPPED
from trellis_contracts.states import JobState
from trellis_workers.core.ray_client import RayJob, RayStatus
from trellis_workers.jobs.verdict import Settlement, decide


def make_job(state: JobState = JobState.RUNNING) -> Job:
    return Job(id="job_a", name="a", state=state, recipe="grpo", model_id="m", dataset_id="d")


def make_ray_job(status: str, exit_code: int | None = None, message: str = "") -> RayJob:
    return RayJob("job_a-1", RayStatus(status), exit_code, message, {})


def make_attempt(**values: Any) -> Attempt:
    return Attempt(job_id="job_a", number=1, **values)


@pytest.mark.parametrize(
    ("status", "exit_code", "state"),
    [
        ("SUCCEEDED", 0, JobState.SUCCEEDED),
        ("FAILED", EXIT_STOPPED, JobState.STOPPED),
        ("FAILED", EXIT_CRASHED, JobState.CRASHED),
        ("FAILED", EXIT_BAD_SPEC, JobState.FAILED),
        ("FAILED", 1, JobState.FAILED),
        ("FAILED", -9, JobState.CRASHED),
        ("FAILED", 137, JobState.CRASHED),
        ("FAILED", None, JobState.CRASHED),
        ("STOPPED", None, JobState.STOPPED),
    ],
)
def test_the_exit_code_decides_the_state(status: str, exit_code: int | None, state: JobState) -> None:
    settlement = decide(make_job(), make_attempt(), make_ray_job(status, exit_code))

    assert settlement.state == state


@pytest.mark.parametrize("exit_code", [EXIT_BAD_SPEC, 1, -9, 137, None])
def test_a_failure_has_a_reason_even_when_the_run_gave_none(exit_code: int | None) -> None:
    assert decide(make_job(), make_attempt(), make_ray_job("FAILED", exit_code)).reason


def test_a_run_that_could_not_be_isolated_says_what_was_in_the_way() -> None:
    message = "Job entrypoint command failed with exit code 76, last logs:\nnot isolated: it is forbidden\n"

    settlement = decide(make_job(), make_attempt(), make_ray_job("FAILED", EXIT_NOT_ISOLATED, message))

    assert (settlement.state, settlement.cause) == (JobState.FAILED, "isolation_unavailable")
    assert settlement.reason is not None
    assert settlement.reason.endswith(": it is forbidden.")


def test_the_runs_own_reason_and_exit_code_are_kept() -> None:
    attempt = make_attempt(outcome="crashed", exit_code=-9, reason="Killed.", cause="killed")

    settlement = decide(make_job(), attempt, make_ray_job("FAILED", EXIT_CRASHED))

    assert settlement == Settlement(JobState.CRASHED, -9, None, None)


def test_a_run_that_succeeded_before_its_parent_was_killed_has_succeeded() -> None:
    attempt = make_attempt(outcome="succeeded", exit_code=0)

    assert decide(make_job(), attempt, make_ray_job("FAILED", -9)).state == JobState.SUCCEEDED


def test_what_the_run_said_does_not_overrule_its_exit_code() -> None:
    attempt = make_attempt(outcome="succeeded", exit_code=0)

    assert decide(make_job(), attempt, make_ray_job("FAILED", 1)).state == JobState.FAILED


def test_a_run_that_was_ended_while_stopping_is_stopped() -> None:
    assert decide(make_job(JobState.STOPPING), None, make_ray_job("FAILED", -9)).state == JobState.STOPPED


def test_rays_own_failure_is_quoted() -> None:
    ray_job = make_ray_job("FAILED", None, "Traceback\nJob supervisor actor died: the node was lost")

    assert "the node was lost" in (decide(make_job(), None, ray_job).reason or "")
