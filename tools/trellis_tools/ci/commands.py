"""Run commands with their output kept, several at a time."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.services.platform import REPOSITORY_ROOT

T = TypeVar("T")

#: Two suites at a time: with a third, suites on two cores ran into their own timeouts.
LANES = 2
#: Exit status of a command that ran into its time limit, as of coreutils' timeout.
TIMED_OUT = 124
#: What a command past its limit has to clean up.
GRACE_S = 30.0


@dataclass(frozen=True)
class Command:
    """One command of the CI run."""

    name: str
    arguments: Sequence[str]
    cwd: Path = REPOSITORY_ROOT
    #: Added to the caller's own.
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    #: Exit statuses that count as passed.
    accepted: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and all that it printed."""

    name: str
    has_passed: bool
    seconds: float
    output: str


def npm_command(script: str, *arguments: str) -> list[str]:
    """Return the command that runs a script from the dashboard's package.json."""
    return ["npm", "--prefix", str(REPOSITORY_ROOT / "frontend"), "run", "--silent", script, *arguments]


def pick(known: Mapping[str, T], names: Iterable[str], what: str) -> list[T]:
    """Return the items of these names, in order; all without names.

    Raises:
        Problem: A name that none has.
    """
    wanted = list(names)
    if unknown := [name for name in wanted if name not in known]:
        raise Problem(
            f"no such {what}: {', '.join(unknown)}",
            hint=f"{what}s: {', '.join(known)}",
            exit_code=ExitCode.USAGE,
        )
    return [known[name] for name in wanted] if wanted else list(known.values())


def run(command: Command, log: Path) -> Outcome:
    """Run a command with its output in ``log``; one that cannot be started says so in its output."""
    started = time.monotonic()
    executable = shutil.which(command.arguments[0]) or command.arguments[0]
    try:
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603
                [executable, *command.arguments[1:]],
                cwd=command.cwd,
                env={**os.environ, **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            exit_code = _wait(process, command.timeout_s)
    except OSError as error:
        return Outcome(command.name, False, 0.0, f"{command.arguments[0]}: {error.strerror}")
    output = log.read_text(errors="replace")
    if exit_code == TIMED_OUT:
        output += f"\n{command.name} was killed: it took longer than {command.timeout_s:.0f} s\n"
    return Outcome(command.name, exit_code in command.accepted, time.monotonic() - started, output)


def _wait(process: "subprocess.Popen[bytes]", timeout_s: float | None) -> int:
    """Wait for a process; past its limit, end it and all that descends from it."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return TIMED_OUT


def _end(process: "subprocess.Popen[bytes]") -> None:
    # SIGINT first: pytest then runs the clean-up of its fixtures and writes its report.
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        for each in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.kill()
        process.wait()


def run_side_by_side(
    commands: Sequence[Command],
    *,
    logs: Path,
    on_end: Callable[[Outcome], None],
    lanes: int = LANES,
) -> list[Outcome]:
    """Start commands in their order, ``lanes`` at a time; outcomes in the same order.

    ``on_end`` is called in the thread of the lane as each command ends.
    """

    def work(command: Command) -> Outcome:
        outcome = run(command, logs / f"{command.name.replace(' ', '-').replace('/', '-')}.log")
        on_end(outcome)
        return outcome

    with ThreadPoolExecutor(lanes) as pool:
        return list(pool.map(work, commands))
