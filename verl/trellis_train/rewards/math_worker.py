"""The child process that compares expressions: a JSON pair a line in, ``true`` or ``false`` out."""

import json
import resource
import sys
from typing import TextIO

#: More than any expression of a person's needs, and less than what would hurt the machine.
MEMORY_BYTES = 4 * 1024**3


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer every line of ``requests``."""
    for line in requests:
        left, right = json.loads(line)
        answers.write("true\n" if _are_equal(left, right) else "false\n")
        answers.flush()


def _are_equal(left: str, right: str) -> bool:
    from math_verify import parse, verify

    # Its own time limits use signals, and the parent has a stricter one.
    parsed = [parse(f"${text.strip().strip('$')}$", parsing_timeout=None) for text in (right, left)]
    return all(parsed) and bool(verify(parsed[0], parsed[1], timeout_seconds=None))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    serve(sys.stdin, answers)
