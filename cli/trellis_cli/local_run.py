"""Runs a job in the foreground without the platform: a bar, its metrics in a file, Ctrl-C to leave.

The first Ctrl-C asks for a checkpoint at the end of the step, the second ends the run at once.
"""

import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from trellis_contracts.attempt import EVENTS_FOLDER, SESSIONS_FILE, SPEC_FILE, STOP_FILE
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, JobSpec
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.headline_metrics import name_headlines

from trellis_cli.errors import Problem
from trellis_cli.event_files import MetricWriter
from trellis_cli.output import err
from trellis_cli.services.platform import python_command
from trellis_cli.watch import JobDisplay

METRICS_FILE, LOG_FILE = "metrics.jsonl", "log"
#: Lines of the log that a failure shows.
TAIL_LINES = 20
_POLL_S = 0.2
#: Metrics beside the bar.
_SHOWN = 4
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class LocalOutcome:
    """How a run ended, and what it left."""

    folder: str
    #: succeeded, stopped, failed or crashed.
    outcome: str = "crashed"
    reason: str | None = None
    #: Code of a known cause of a failure.
    cause: str | None = None
    step: int = 0
    total_steps: int | None = None
    #: The newest value of every metric.
    metrics: dict[str, float] = field(default_factory=dict)
    #: The newest checkpoint: its folder, and that of its Hugging Face files if it has one.
    checkpoint: str | None = None
    hf_path: str | None = None
    seconds: float = 0.0
    #: Of an agent: sessions that were played, those that failed by kind of error, and the first of them.
    sessions: int = 0
    failed_sessions: dict[str, int] = field(default_factory=dict)
    first_failure: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_local(
    spec: JobSpec, *, environment: Mapping[str, str] | None = None, writer: MetricWriter | None = None
) -> LocalOutcome:
    """Run an attempt that ``write_spec`` wrote, to its end or to Ctrl-C; ``writer`` gets its metrics, too.

    A failure is an outcome like any other; ``require_success`` makes a ``Problem`` of it.
    """
    attempt_dir = Path(spec.attempt_dir)
    folder = attempt_dir.parent
    outcome = LocalOutcome(str(folder))
    started = time.monotonic()
    with (folder / LOG_FILE).open("a") as log, (folder / METRICS_FILE).open("a") as metrics:
        process = _start(attempt_dir / SPEC_FILE, log, environment or {})
        follower = _Follower(spec, outcome, log, metrics, writer)
        with JobDisplay() as display, _leaving_on_signals(process, attempt_dir / STOP_FILE):
            while True:
                exit_code = process.poll()
                follower.read()
                display.show(*follower.describe())
                if exit_code is not None:
                    break
                time.sleep(_POLL_S)
    if writer is not None:
        writer.close()
    outcome.seconds = round(time.monotonic() - started, 1)
    _count_sessions(attempt_dir / SESSIONS_FILE, outcome)
    if not follower.has_ended:
        outcome.reason = _explain(exit_code)
        outcome.outcome = "stopped" if exit_code == EXIT_STOPPED else "crashed"
    return outcome


def require_success(outcome: LocalOutcome) -> LocalOutcome:
    """Return the outcome of a run that succeeded or was stopped; else raise ``Problem`` with hint and log."""
    from trellis_api.jobs.failures.hints import find_hint

    if outcome.outcome in ("succeeded", "stopped"):
        return outcome
    log = Path(outcome.folder) / LOG_FILE
    tail = [line for line, _ in groupby(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])]
    if outcome.reason:  # the message has it
        tail = [line for line in tail if not line.endswith(outcome.reason)]
    advice = find_hint(outcome.cause)
    shown = [*([advice.en] if advice is not None else []), *tail, f"Full log: {log}"]
    raise Problem(f"the run {outcome.outcome}: {outcome.reason}", hint="\n  ".join(shown))


def describe_failed_sessions(outcome: LocalOutcome) -> str | None:
    """Describe how many of an agent's sessions failed, of which kinds, and the first; None if none did."""
    if not outcome.failed_sessions:
        return None
    failed = sum(outcome.failed_sessions.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in outcome.failed_sessions.items())
    return (
        f"{failed} of {outcome.sessions} sessions failed and count as reward 0: {kinds}. "
        f"First: {outcome.first_failure}. Tracebacks: {Path(outcome.folder) / LOG_FILE}"
    )


def _count_sessions(file: Path, outcome: LocalOutcome) -> None:
    """Add up what the run wrote down of its sessions; a run without an agent wrote nothing."""
    if not file.exists():
        return
    failed: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        batch = json.loads(line)
        outcome.sessions += batch["sessions"]
        failed.update(batch["failed"])
        outcome.first_failure = outcome.first_failure or batch["first"]
    outcome.failed_sessions = dict(failed.most_common())


class _Follower:
    """Reads the event spool as it grows."""

    def __init__(
        self,
        spec: JobSpec,
        outcome: LocalOutcome,
        log: TextIO,
        metrics: TextIO,
        writer: MetricWriter | None = None,
    ) -> None:
        self._writer = writer
        self._spec, self._outcome, self._log, self._metrics = spec, outcome, log, metrics
        self._folder = Path(spec.attempt_dir) / EVENTS_FOLDER
        self._offsets: dict[Path, int] = {}
        self._phase = "preparing"
        self._headlines = get_recipe(spec.recipe).headline_metrics
        self.has_ended = False

    def read(self) -> None:
        """Take in the whole lines that were added."""
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole)
            for line in whole.splitlines():
                if line.strip():
                    self._take(json.loads(line))
        self._log.flush()
        self._metrics.flush()

    def _take(self, event: dict[str, Any]) -> None:
        outcome, kind = self._outcome, event["kind"]
        if kind == "metrics":
            line = {"attempt": self._spec.attempt, "step": event["step"], **event["values"]}
            self._metrics.write(json.dumps(line) + "\n")
            outcome.metrics.update(event["values"])
            if self._writer is not None:
                self._writer.write(event["step"], event["values"])
        elif kind == "progress":
            self._phase = event["phase"]
            outcome.step = max(outcome.step, event["step"])
            outcome.total_steps = event["total_steps"] or outcome.total_steps
        elif kind == "checkpoint":
            outcome.checkpoint, outcome.hf_path = event["path"], event["hf_path"]
        elif kind == "log":
            self._log.writelines(f"{line}\n" for line in event["lines"])
        elif kind == "outcome":
            outcome.outcome, outcome.reason = event["outcome"], event["reason"]
            outcome.cause = event.get("cause")
            self.has_ended = True

    def describe(self) -> tuple[dict[str, Any], str]:
        """Return the progress and state that ``JobDisplay`` shows."""
        progress = {
            "phase": self._phase,
            "step": self._outcome.step,
            "total_steps": self._outcome.total_steps,
        }
        state = self._outcome.outcome if self.has_ended else "running"
        newest = self._outcome.metrics
        keys = [key for key in name_headlines(self._headlines, newest) if key in newest]
        shown = [f"{key} {float(newest[key]):.4g}" for key in keys[:_SHOWN]]
        return {"name": self._spec.name, "state": state, "progress": progress}, "  ".join(shown)


def _start(spec_file: Path, log: TextIO, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Start the run's parent process in its own session, so that Ctrl-C reaches only this process."""
    return subprocess.Popen(  # noqa: S603 - the command is ours
        command_alone(spec_file),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**environment_alone(), **environment},
        start_new_session=True,
        text=True,
    )


def command_alone(spec_file: Path) -> list[str]:
    """Return the command that runs an attempt without the platform."""
    return python_command("-m", "trellis_train.entrypoint", "--alone", str(spec_file))


def environment_alone() -> dict[str, str]:
    """Return the environment of a run with its own Ray cluster, without this terminal's Ray settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    # A token of its own too; Ray would leave one in the home folder.
    return {**inherited, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@contextmanager
def _leaving_on_signals(process: "subprocess.Popen[str]", stop_file: Path) -> Iterator[None]:
    """Ask the run to stop at a checkpoint on the first signal and terminate it on later ones."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        if not stop_file.exists():
            stop_file.touch()
            err.print("stopping after this step; press Ctrl-C again to stop immediately", style="yellow")
        elif process.poll() is None:
            process.terminate()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, leave) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:  # we leave by an error of our own
            process.terminate()
            process.wait()


def _explain(exit_code: int) -> str:
    if exit_code == EXIT_BAD_SPEC:
        return "invalid job spec"
    return f"the process exited with code {exit_code} without output"
