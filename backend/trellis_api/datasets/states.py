"""The states of a dataset."""

from enum import StrEnum


class DatasetState(StrEnum):
    """Whether a dataset has rows."""

    #: The task that makes its first version waits or runs.
    CREATING = "creating"
    READY = "ready"
    #: That task failed or was cancelled; nothing of it is left.
    FAILED = "failed"
