"""What can go wrong with environments."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class EnvironmentNotFound(NotFound):
    """No environment has this id."""

    code = "environment_not_found"


class EnvironmentNameTaken(Conflict):
    """Another environment has this name."""

    code = "environment_name_taken"


class InvalidEnvironment(InvalidRequest):
    """The kind or a parameter is wrong; details name each."""

    code = "invalid_environment"


class EnvironmentInUse(Conflict):
    """An unfinished job, or a pipeline of jobs that is under way, uses the environment."""

    code = "environment_in_use"


class EnvironmentNotReady(Conflict):
    """The environment is still being made, or could not be."""

    code = "environment_not_ready"


class EnvironmentNotRetryable(Conflict):
    """Only an environment that failed is made again."""

    code = "environment_not_retryable"


class UnknownEnvironment(InvalidRequest):
    """A job names an environment that does not exist."""

    code = "unknown_environment"


class UnsuitableEnvironment(InvalidRequest):
    """A job names an environment of a kind that its agent cannot work in, or none where it needs one."""

    code = "unsuitable_environment"


class UnknownTool(InvalidRequest):
    """The environment has no tool of this name."""

    code = "unknown_tool"


class ToolCallNotFound(NotFound):
    """No call has this id."""

    code = "tool_call_not_found"
