"""What can go wrong with data tasks."""

from trellis_api.core.errors import Conflict, NotFound


class DataTaskNotFound(NotFound):
    """No task has this id."""

    code = "data_task_not_found"


class DataTaskFinished(Conflict):
    """The task is over and cannot be cancelled."""

    code = "data_task_finished"


class DataTaskUnfinished(Conflict):
    """The task waits or runs, and cannot be forgotten or taken up again."""

    code = "data_task_unfinished"


class DataTaskNotRetryable(Conflict):
    """The task has succeeded, or what it worked on is gone."""

    code = "data_task_not_retryable"
