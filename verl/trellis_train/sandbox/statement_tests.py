"""Tests a program by statements that must not raise, in a process that has nothing of the program.

The statements name functions, classes and objects of the program; ``remote_objects`` stands in for them.
What crosses is text that nobody reads here.
"""

import queue
import time
from dataclasses import replace
from typing import Any

from trellis_train.sandbox.command import require_sandbox
from trellis_train.sandbox.errors import CodeRaised, SandboxError, TooSlow
from trellis_train.sandbox.function_tests import MAX_VALUE_BYTES
from trellis_train.sandbox.limits import Limits
from trellis_train.sandbox.session import SandboxSession
from trellis_train.sandbox.tester import Tester

#: For the statements' own work, and for the modules that they import.
_TESTS_WALL_S = 5.0


class StatementTester:
    """As many programs at a time as ``at_a_time``; threads may share it."""

    def __init__(self, limits: Limits, *, at_a_time: int) -> None:
        """Take the ``limits`` of a program: its time is that of one test; ``SandboxUnavailable``."""
        require_sandbox()
        self._limits = replace(limits, answer_bytes=MAX_VALUE_BYTES + 4096)
        for_tests = replace(self._limits, wall_s=limits.wall_s + _TESTS_WALL_S, cpu_s=Limits().cpu_s)
        self._all = [Tester(for_tests) for _ in range(at_a_time)]
        self._free: queue.LifoQueue[Tester] = queue.LifoQueue()
        for tester in self._all:
            self._free.put(tester)

    def load(self, program: bytes, *, tests: int) -> "ProgramUnderTest":
        """Load a program with CPU time for this many tests; it starts with its first test."""
        limits = replace(self._limits, cpu_s=self._limits.cpu_s * max(1, tests))
        return ProgramUnderTest(program, limits, self._free)

    def close(self) -> None:
        """End the processes; programs that are being tested must have ended."""
        for tester in self._all:
            tester.close()


class ProgramUnderTest:
    """One program, which is started anew where a test has ended it."""

    def __init__(self, program: bytes, limits: Limits, testers: "queue.LifoQueue[Tester]") -> None:
        self._process = SandboxSession(program, mode="objects", limits=limits)
        self._wall_s, self._testers = limits.wall_s, testers

    def passes(self, statements: str) -> bool:
        """Tell whether the statements run to their end.

        ``CodeNotLoaded``, ``TooSlow`` or another ``SandboxError`` where the program does not let them;
        ``ValueError`` where the statements cannot be executed apart from any program.
        """
        self._process.open()
        tester = self._testers.get()
        asked = _Asked(self._process, time.monotonic() + self._wall_s)
        try:
            tester.open()
            verdict = tester.execute({"statements": statements}, question="message", answer=asked.answer)
        finally:
            self._testers.put(tester)
        if asked.gone is not None:
            raise asked.gone
        if "unfit" in verdict:
            raise ValueError(str(verdict["unfit"]))
        return verdict.get("passed") is True

    def close(self) -> None:
        """End the program."""
        self._process.close()


class _Asked:
    """The program's process during one test; an end is kept, as its session would start it anew."""

    def __init__(self, process: SandboxSession, deadline: float) -> None:
        self._process, self._deadline = process, deadline
        self.gone: SandboxError | None = None

    def answer(self, message: Any) -> dict[str, Any]:
        """Return the outcome for the tests: ``message``, ``raised`` or ``gone``."""
        if self.gone is None:
            left_s = self._deadline - time.monotonic()
            try:
                reply = self._process.call({"message": message}, timeout_s=left_s)
            except CodeRaised as error:
                return {"raised": str(error)}
            except SandboxError as error:
                self.gone = error
            else:
                if isinstance(reply.get("message"), str):
                    return {"message": reply["message"]}
                self._process.close()
                self.gone = SandboxError("it wrote invalid data to the result pipe")
        is_slow = isinstance(self.gone, TooSlow)
        return {"gone": "it took too long" if is_slow else str(self.gone)}
