"""The one error that commands raise on purpose, and the exit codes that scripts may rely on."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit status of every command means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4


class Problem(Exception):
    """Something that a person can act on: one sentence, and what to do about it."""

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: ExitCode = ExitCode.FAILED
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


class Refusal(Problem):
    """The platform said no; ``status`` is that of HTTP."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message, exit_code=ExitCode.REFUSED)
        self.status = status
