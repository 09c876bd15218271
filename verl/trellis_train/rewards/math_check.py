"""Equality of mathematical expressions (math-verify on SymPy), with a real time limit.

A model may write ``9**9**9**9``. SymPy then computes for ever inside one C call, which
no thread or signal can end, so expressions are compared in child processes, each of which
is replaced when it takes too long. Rewards and evaluations share them.
"""

import atexit
import json
import os
import select
import subprocess
import sys
from queue import LifoQueue

#: Of the processor's time, so that a machine with much else to do gives the same answers.
TIMEOUT_S = 5.0
#: A child's first answer waits for the import of SymPy.
FIRST_TIMEOUT_S = 60.0
#: Seconds on the clock that may pass for a second of the processor's time.
_SLOWEST = 20
#: Longer answers are no expressions.
MAX_CHARACTERS = 500


class _Child:
    """One process, asked line by line by one thread at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "trellis_train.rewards.math_worker"]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, left: str, right: str, timeout_s: float) -> bool | None:
        """The answer; None where none came, and the child must be ended."""
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise RuntimeError("the math worker was started without pipes")
        try:
            requests.write(json.dumps([left, right, timeout_s]) + "\n")
            requests.flush()
            is_ready = bool(select.select([answers], [], [], timeout_s * _SLOWEST)[0])
            answer = answers.readline().strip() if is_ready else ""
        except BrokenPipeError:
            answer = ""
        return None if not answer else answer == "true"

    def end(self) -> None:
        """End the process, whatever it computes."""
        self._process.kill()
        self._process.communicate()


class _Pool:
    """As many children as threads that ask at once, up to the number of processors."""

    def __init__(self, size: int) -> None:
        #: The child that was used last is used first, so that a lone asker has one child. None: not started.
        self._idle: LifoQueue[_Child | None] = LifoQueue()
        for _ in range(size):
            self._idle.put(None)

    def ask(self, left: str, right: str) -> bool | None:
        """Waits for a free child; None where the answer took too long."""
        child = self._idle.get()
        try:
            if child is None:
                child = _Child()
                # Paid for once, so that only expressions are held to the time limit.
                if child.ask("1", "1", FIRST_TIMEOUT_S) is None:
                    raise RuntimeError("the process that compares expressions does not start")
            answer = child.ask(left, right, TIMEOUT_S)
            if answer is None:  # too slow, or it died on the expression
                child.end()
                child = None
            return answer
        except BaseException:
            if child is not None:
                child.end()
                child = None
            raise
        finally:
            self._idle.put(child)

    def close(self) -> None:
        """End the children that nobody waits for; the next question starts one again."""
        children = []
        while not self._idle.empty():
            children.append(self._idle.get())
        for child in children:
            if child is not None:
                child.end()
            self._idle.put(None)


_pool = _Pool(len(os.sched_getaffinity(0)))
atexit.register(_pool.close)


def compare_expressions(found: str, wanted: str) -> bool | None:
    """Whether two LaTeX or plain expressions are equal; None where that cannot be found out in time.

    ``wanted`` is the reference: math-verify reads ``x = 5`` as ``5`` where the reference is a number.
    Safe to call from many threads.
    """
    if max(len(found), len(wanted)) > MAX_CHARACTERS:
        return None
    return _pool.ask(found, wanted)


def are_equal_expressions(found: str, wanted: str) -> bool:
    """Whether two LaTeX or plain expressions are equal; False where that cannot be found out in time."""
    return bool(compare_expressions(found, wanted))


def end_children() -> None:
    """End the processes that compare, when nothing is to be compared for a while."""
    _pool.close()
