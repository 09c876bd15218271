"""States of sweeps and of their runs."""

from enum import StrEnum

from trellis_contracts.states import ACTIVE, JobState


class SweepState(StrEnum):
    """State of a sweep."""

    RUNNING = "running"
    #: No more runs begin; those that run save a checkpoint and leave.
    STOPPING = "stopping"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


UNDER_WAY = frozenset({SweepState.RUNNING, SweepState.STOPPING})


class RunState(StrEnum):
    """State of a run: that of its job, or an end state of the sweep."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: Stopped early, because others were better at the same step.
    PRUNED = "pruned"
    #: Its job could not be submitted.
    REFUSED = "refused"
    DELETED = "deleted"


#: Runs with a value that counts.
FINISHED = frozenset({RunState.SUCCEEDED, RunState.PRUNED})
_OF_JOB = {
    JobState.QUEUED: RunState.QUEUED,
    JobState.STOPPED: RunState.STOPPED,
    JobState.SUCCEEDED: RunState.SUCCEEDED,
    JobState.FAILED: RunState.FAILED,
    JobState.CRASHED: RunState.FAILED,
}


def of_run(*, job_state: JobState | None, is_pruned: bool, is_refused: bool) -> RunState:
    """Return the state of a run; ``job_state`` is None if its job was deleted or never written."""
    if is_refused:
        return RunState.REFUSED
    if job_state is None:
        return RunState.DELETED
    if is_pruned and job_state not in ACTIVE and job_state != JobState.SUCCEEDED:
        return RunState.PRUNED
    return _OF_JOB.get(job_state, RunState.RUNNING)
