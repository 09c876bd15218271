"""Asks the part of the engine that knows workflows, in a process of its own, and tells its faults."""

import subprocess
from typing import Any

from trellis_cli.services.platform import python_command

_MODULE = "trellis_train.agents.tune"


def ask(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run ``python -m trellis_train.agents.tune`` and return the completed process."""
    command = [*python_command("-m", _MODULE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def complaint(done: "subprocess.CompletedProcess[str]") -> str:
    """Return why there is no answer."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"it ended with exit code {done.returncode}"


def tell(fault: dict[str, Any]) -> str:
    """Format a fault as a line, with its details after it."""
    place = f" ({fault['param']})" if fault["param"] else ""
    line = f"{fault['code']}{place}: expected {fault['expected']}, got {fault['got']}"
    return f"{line}\n{fault['detail']}" if fault["detail"] else line
