"""Equality of mathematical expressions (math-verify on SymPy), with a real time limit.

A model may write ``9**9**9**9``. SymPy then computes for ever inside one C call, which
no thread or signal can end, so expressions are compared in a child process that is
replaced when it takes too long.
"""

import atexit
import json
import select
import subprocess
import sys
from threading import Lock

TIMEOUT_S = 5.0
#: The child's first answer waits for the import of SymPy.
FIRST_TIMEOUT_S = 60.0
#: Longer answers are no expressions.
MAX_CHARACTERS = 500


class _Checker:
    """One child process at a time, asked line by line."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._child: subprocess.Popen[str] | None = None

    def ask(self, left: str, right: str) -> bool:
        with self._lock:
            if self._child is None:
                self._child = self._start()
                # Paid for once, so that only expressions are held to the time limit.
                self._exchange(self._child, "1", "1", FIRST_TIMEOUT_S)
            return self._child is not None and self._exchange(self._child, left, right, TIMEOUT_S)

    def _exchange(self, child: subprocess.Popen[str], left: str, right: str, timeout_s: float) -> bool:
        """The child's answer; where none comes, it is ended and the answer is no."""
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the math worker was started without pipes")
        try:
            child.stdin.write(json.dumps([left, right]) + "\n")
            child.stdin.flush()
            is_ready = bool(select.select([child.stdout], [], [], timeout_s)[0])
            answer = child.stdout.readline() if is_ready else ""
        except BrokenPipeError:
            answer = ""
        if not answer:  # too slow, or it died on the expression
            self._end()
        return answer.strip() == "true"

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trellis_train.rewards.math_worker"]
        return subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()


_checker = _Checker()
atexit.register(_checker.close)


def are_equal_expressions(left: str, right: str) -> bool:
    """Whether two LaTeX or plain expressions are equal; False where that cannot be found out in time."""
    if max(len(left), len(right)) > MAX_CHARACTERS:
        return False
    return _checker.ask(left, right)
