"""The child process that compares expressions: two of them and a time limit as JSON a line in,
``true`` or ``false`` out. It ends where a comparison takes longer than its limit.
"""

import json
import resource
import signal
import sys
from functools import lru_cache
from typing import Any, TextIO

#: More than any expression of a person's needs, and less than what would hurt the machine.
MEMORY_BYTES = 4 * 1024**3


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer every line of ``requests``."""
    for line in requests:
        left, right, limit_s = json.loads(line)
        # Counts this process's own time; its signal, which nobody handles, ends even a C function.
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        answer = _are_equal(left, right)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write("true\n" if answer else "false\n")
        answers.flush()


def _are_equal(left: str, right: str) -> bool:
    from math_verify import verify

    wanted, found = _parse(right), _parse(left)
    # math-verify's own time limits need its caller's main thread to wait for a signal of their own.
    return bool(wanted and found and verify(wanted, found, timeout_seconds=None))


@lru_cache(maxsize=4096)
def _parse(text: str) -> list[Any]:
    """What the text may mean; two thirds of a comparison's time go here, and answers come again."""
    from math_verify import parse

    return parse(f"${text.strip().strip('$')}$", parsing_timeout=None)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    serve(sys.stdin, answers)
