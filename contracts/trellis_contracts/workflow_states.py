"""Whether a workflow can be trained: a package may need packages of the index first."""

from enum import StrEnum


class WorkflowState(StrEnum):
    """Where a workflow is in its life."""

    QUEUED = "queued"
    INSTALLING = "installing"
    READY = "ready"
    FAILED = "failed"
