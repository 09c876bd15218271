"""Runs a program once, isolated, with a given standard input; for tests of written code."""

import json
import subprocess
from dataclasses import dataclass

from trellis_train.sandbox.command import (
    HARNESS_INSIDE,
    Inherited,
    build_command,
    package_folders,
    require_sandbox,
)
from trellis_train.sandbox.limits import Limits
from trellis_train.sandbox.output import BoundedLog

#: The start of bubblewrap and Python comes on top of the program's own time.
START_S = 1.0


@dataclass(frozen=True)
class ProgramOutcome:
    """What a program printed and how it ended; None for the exit code of one that was ended."""

    output: str
    exit_code: int | None
    is_cut: bool

    @property
    def is_clean(self) -> bool:
        """Whether it ended by itself, without an error and within its output."""
        return self.exit_code == 0 and not self.is_cut


def run_program(code: bytes, *, standard_input: str, limits: Limits) -> ProgramOutcome:
    """Run it to its end or to its limits; only what cannot be isolated raises (``SandboxUnavailable``)."""
    require_sandbox()
    with Inherited(code) as file, Inherited(standard_input.encode("utf-8", "replace")) as given:
        arguments = [HARNESS_INSIDE, "program", limits.as_argument(), json.dumps(package_folders())]
        command = build_command(arguments, code=file, limits=limits)
        process = command.start(stdin=given.descriptor, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return _collect(process, limits)


def _collect(process: subprocess.Popen[bytes], limits: Limits) -> ProgramOutcome:
    """Read what it prints up to the limit, and end it when its time is up."""
    log = BoundedLog(process.stdout, limits.output_bytes)
    try:
        exit_code: int | None = process.wait(limits.wall_s + START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        exit_code = None
    log.close()
    return ProgramOutcome(log.text(), exit_code, is_cut=log.is_cut)
