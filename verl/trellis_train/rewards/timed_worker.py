"""The child process that answers questions: two texts and a time limit as JSON a line in, ``true`` or
``false`` out. It ends where an answer takes longer than its limit.

``python -m trellis_train.rewards.timed_worker <module with answer(left, right)>``.
"""

import json
import resource
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TextIO

#: More than any question of a person's needs, and less than what would hurt the machine.
MEMORY_BYTES = 4 * 1024**3


def serve(answer: Callable[[str, str], bool], requests: TextIO, answers: TextIO) -> None:
    """Answer every line of ``requests``."""
    for line in requests:
        left, right, limit_s = json.loads(line)
        # Counts this process's own time; its signal, which nobody handles, ends even a C function.
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        is_so = answer(left, right)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write("true\n" if is_so else "false\n")
        answers.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    serve(import_module(sys.argv[1]).answer, sys.stdin, answers)
