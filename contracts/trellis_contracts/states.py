"""The states of a job, shared by the API, the workers and the training process."""

from enum import StrEnum


class JobState(StrEnum):
    """State of a job.

    ``FAILED`` is the run's fault (its exit code says so); ``CRASHED`` is the
    machine's fault (killed, out of memory, node lost).
    """

    QUEUED = "queued"
    LAUNCHING = "launching"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CRASHED = "crashed"


#: States in which a job holds its slots.
HOLDS_SLOTS = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})
#: States from which a job can still change without a person asking.
ACTIVE = HOLDS_SLOTS | {JobState.QUEUED}
#: States in which the attempt is over.
FINISHED = frozenset(JobState) - ACTIVE
