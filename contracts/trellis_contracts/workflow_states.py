"""Whether a workflow can be trained: a package may need packages of the index first."""

from enum import StrEnum


class WorkflowState(StrEnum):
    """State of a workflow."""

    QUEUED = "queued"
    INSTALLING = "installing"
    READY = "ready"
    FAILED = "failed"
