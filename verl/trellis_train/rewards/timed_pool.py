"""Questions that may take for ever, with a real time limit.

SymPy may compute ``9**9**9**9``, or a pattern go back and forth, inside one C call, which no thread or
signal can end. So these questions are answered in child processes, each of which is replaced when it
takes too long.
"""

import atexit
import json
import os
import select
import subprocess
import sys
from queue import LifoQueue

#: A child's first answer waits for its imports.
FIRST_TIMEOUT_S = 60.0
#: Seconds on the clock that may pass for a second of the processor's time.
_SLOWEST = 20


class TimedPool:
    """As many children as threads that ask at once, up to the number of processors.

    ``module`` answers a question: its ``answer(left, right)`` returns a bool. ``trial`` is a quick question.
    """

    def __init__(self, module: str, *, trial: tuple[str, str]) -> None:
        self._module, self._trial = module, trial
        #: The child that was used last is used first, so that a lone asker has one child. None: not started.
        self._idle: LifoQueue[_Child | None] = LifoQueue()
        for _ in range(len(os.sched_getaffinity(0))):
            self._idle.put(None)
        atexit.register(self.close)

    def ask(self, left: str, right: str, *, timeout_s: float) -> bool | None:
        """Ask a free child, waiting for one; None if the answer took more than this much CPU time."""
        child = self._idle.get()
        try:
            if child is None:
                child = _Child(self._module)
                # Paid for once, so that only questions are held to the time limit.
                if child.ask(*self._trial, FIRST_TIMEOUT_S) is None:
                    raise RuntimeError(f"the {self._module} process could not start")
            answer = child.ask(left, right, timeout_s)
            if answer is None:  # too slow, or it died on the question
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


class _Child:
    """One process, asked line by line by one thread at a time."""

    def __init__(self, module: str) -> None:
        command = [sys.executable, "-m", "trellis_train.rewards.timed_worker", module]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, left: str, right: str, timeout_s: float) -> bool | None:
        """Return the answer, or None if there was none and the child must be ended."""
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise RuntimeError("the child was started without pipes")
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
