"""The isolated process that executes tests, with questions that others answer while it does."""

from collections.abc import Callable, Sequence
from typing import Any

from trellis_train.sandbox.errors import CodeNotLoaded, SandboxError
from trellis_train.sandbox.limits import Limits
from trellis_train.sandbox.session import SandboxSession

#: A process of tests is made anew after so many programs, before its processor time is used up.
_LASTS = 400


class Tester:
    """A process that executes tests, one program's after the other's."""

    def __init__(self, limits: Limits, *, packages: Sequence[str] | None = None) -> None:
        self._session = SandboxSession(b"", mode="checks", limits=limits, packages=packages)
        self._runs = 0

    def open(self) -> None:
        """Start the process where there is none, or where it is worn."""
        self._runs += 1
        if self._runs % _LASTS == 0:
            self._session.close()
        try:
            self._session.open()
        except CodeNotLoaded as error:
            raise SandboxError(f"the test process could not start: {error}") from None

    def execute(
        self, tests: dict[str, Any], *, question: str, answer: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        """Run the tests and return the verdict; replies with the key ``question`` are answered until then.

        ``SandboxError`` where there is none, and the next tests get a new process.
        """
        try:
            reply = self._session.call(tests)
            while question in reply:
                reply = self._session.call(answer(reply[question]))
        except SandboxError:
            self._session.close()
            raise
        return reply

    def close(self) -> None:
        """End the process."""
        self._session.close()
