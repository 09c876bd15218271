"""Tests a function that a stranger wrote, with a verdict that its code cannot forge.

Two isolated processes take part. One executes the stranger's code and has nothing of the tests; the
other executes the tests and nothing of the stranger. What crosses between them is plain data, handed on
here as text that nobody reads: arguments one way, results the other. So equality, printing, leaving the
process, or reaching into frames, files and built-ins changes nothing but the stranger's own process.
"""

import math
import os
import queue
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis_train.sandbox.command import require_sandbox
from trellis_train.sandbox.errors import CodeNotLoaded, CodeRaised, SandboxError
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.output import as_text
from trellis_train.sandbox.session import SandboxSession
from trellis_train.sandbox.tester import Tester

#: Of one call's arguments or result, as text.
MAX_VALUE_BYTES = MIB
#: A busy machine stretches time; the limit is one of processor time, and this many times as much may pass.
_WALL_FACTOR = 4.0
_TESTER_LIMITS = Limits(wall_s=30.0, memory_bytes=1024 * MIB, answer_bytes=MAX_VALUE_BYTES + 4096)
_SHOWN_OUTPUT = 2000


@dataclass(frozen=True)
class FunctionTest:
    """Tests of one function, from a source that is trusted."""

    function: str
    #: Python that defines what the tests use beside the function.
    before: str
    #: Python that defines ``check(candidate)``, which raises where the function is wrong.
    test: str


@dataclass(frozen=True)
class TestOutcome:
    """Whether the tests passed; if not, why."""

    __test__ = False  # no test, for pytest

    has_passed: bool
    problem: str | None = None
    #: The end of what the code printed.
    printed: str = ""


class FunctionTester:
    """As many programs at a time as there are processors; threads may share it."""

    def __init__(
        self,
        *,
        timeout_s: float,
        memory_bytes: int,
        packages: Sequence[str] | None = None,
        at_a_time: int | None = None,
    ) -> None:
        """Take the CPU time ``timeout_s`` of one program, loading and all calls; ``SandboxUnavailable``."""
        require_sandbox()
        self._wall_s = _WALL_FACTOR * timeout_s
        self._limits = Limits(
            wall_s=self._wall_s,
            cpu_s=math.ceil(timeout_s),
            memory_bytes=memory_bytes,
            answer_bytes=MAX_VALUE_BYTES + 4096,
        )
        self._packages = packages
        self._testers: queue.LifoQueue[Tester] = queue.LifoQueue()
        self._all = [
            Tester(_TESTER_LIMITS, packages=packages)
            for _ in range(at_a_time or len(os.sched_getaffinity(0)))
        ]
        for tester in self._all:
            self._testers.put(tester)

    def run(self, program: str, test: FunctionTest) -> TestOutcome:
        """Load the program, then let the tests call its function.

        ``SandboxError`` where the process of the tests does not start, which is no fault of the program.
        """
        tester = self._testers.get()
        candidate = SandboxSession(
            program.encode("utf-8", "replace"), mode="function", limits=self._limits, packages=self._packages
        )
        try:
            tester.open()
            deadline = time.monotonic() + self._wall_s
            candidate.open()
            problem = _judge(tester, test, _Function(candidate, test.function, deadline))
        except CodeNotLoaded as error:
            problem = str(error)
        finally:
            candidate.close()
            self._testers.put(tester)
        return TestOutcome(problem is None, problem, candidate.printed(_SHOWN_OUTPUT))

    def close(self) -> None:
        """End the processes; programs that are being tested must have ended."""
        for tester in self._all:
            tester.close()


class _Function:
    """The stranger's function, as long as its process lives."""

    def __init__(self, process: SandboxSession, name: str, deadline: float) -> None:
        self._process, self._name, self._deadline = process, name, deadline
        #: Why there is no function any more.
        self.gone: str | None = None

    def call(self, arguments: Any) -> dict[str, Any]:
        """Call the function and return the outcome for the tests: ``value``, ``raised`` or ``gone``."""
        if self.gone is None:
            request = {"function": self._name, "arguments": arguments}
            try:
                reply = self._process.call(request, timeout_s=self._deadline - time.monotonic())
            except CodeRaised as error:
                return {"raised": str(error)}
            except SandboxError as error:
                # Its session would start it anew, with what it had in memory forgotten.
                self.gone = str(error)
            else:
                if isinstance(reply.get("value"), str):
                    return {"value": reply["value"]}
                self.gone = "it wrote invalid data to the result pipe"
        return {"gone": self.gone}


def _judge(tester: Tester, test: FunctionTest, function: _Function) -> str | None:
    """Explain why the function fails the tests; None where it passes."""
    tests = {"function": test.function, "before": test.before, "test": test.test}
    try:
        verdict = tester.execute(tests, question="arguments", answer=function.call)
    except SandboxError as error:
        return f"the tests did not finish on what the function returned: {error}"
    if function.gone is not None:
        return function.gone
    if verdict.get("passed") is True:
        return None
    return as_text(str(verdict.get("problem") or "the tests failed without a message"))
