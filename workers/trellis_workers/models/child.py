"""Runs the programs that bring a model's files, and ends them where nobody waits for the model any more."""

import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from trellis_workers.core.processes import end_gently
from trellis_workers.models.hub import FetchFailed

#: Raises ``FetchCancelled`` once the fetch was cancelled, or its model deleted.
RequireWanted = Callable[[], None]
_LOOK_S = 0.5
_END_S = 5.0


class FetchCancelled(Exception):
    """Nobody waits for the model any more."""


def run_child(
    command: Sequence[str], *, doing: str, require_wanted: RequireWanted, timeout_s: float, **options: Any
) -> int:
    """Run a program and return its exit status; it is ended with this call, however that ends.

    ``doing`` begins the sentence about its time being over, such as "Converting the file"; ``options`` are
    those of ``subprocess.Popen``. Raises ``FetchFailed`` and ``FetchCancelled``.
    """
    ends_at = time.monotonic() + timeout_s
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)  # noqa: S603 - programs of our own
    try:
        while True:
            try:
                return child.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                require_wanted()
            if time.monotonic() > ends_at:
                raise FetchFailed(f"{doing} took longer than {timeout_s / 3600:g} h.")
    finally:
        end_gently(child, _END_S)
