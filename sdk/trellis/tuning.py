"""``trellis.tune``: train a workflow on this machine."""

import ctypes
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from trellis_contracts.engine_install import require_engine

_PICKLE = "workflow.pkl"
_PR_SET_PDEATHSIG = 1


class TuneFailed(RuntimeError):
    """The training did not end well; the message says why and where its log lies."""


@dataclass(frozen=True)
class TuneResult:
    """How a training ended, and what it left."""

    #: ``succeeded`` or ``stopped``.
    outcome: str
    folder: str
    step: int = 0
    #: The newest value of every metric.
    metrics: dict[str, float] = field(default_factory=dict)
    checkpoint: str | None = None
    #: The newest checkpoint as a Hugging Face folder.
    hf_path: str | None = None
    #: Sessions that were played, and those of them that failed by kind of error; each counts as reward 0.
    sessions: int = 0
    failed_sessions: dict[str, int] = field(default_factory=dict)
    first_failure: str | None = None


def tune(
    workflow_func: Callable[..., Any],
    config_path: Path | str,
    *,
    judge: Callable[..., Any] | None = None,
    output: Path | str | None = None,
    resume: bool = False,
) -> TuneResult:
    """Train ``workflow_func`` as the YAML at ``config_path`` says, in the foreground.

    ``async def f(task: Dict, model: TunableChatModel) -> float``, or ``-> WorkflowOutput`` with an
    ``async judge(task, response) -> JudgeOutput``. ``ImportError`` where the engine is not installed,
    ``ValueError`` for a wrong signature (all faults at once) or configuration, a model or rows that are not
    there, and a workflow whose first sessions fail with a scripted model; ``TuneFailed`` else.
    ``resume`` goes on from the last checkpoint of the run's folder, which else must have none.
    """
    check(workflow_func, judge, config_path)
    with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
        pickled = Path(folder, _PICKLE)
        save(pickled, workflow_func, judge)
        check_sessions(pickled, config_path)
        return run(config_path, str(pickled), output=output, resume=resume)


def check(workflow_func: object, judge: object, config_path: Path | str) -> None:
    """Raise what is wrong with the functions or the configuration, before anything is started."""
    require_engine()
    from trellis_train.agents.tune.settings import load_config
    from trellis_train.agents.tune.signature import validate_workflow

    validate_workflow(workflow_func, judge)
    load_config(config_path)


def check_sessions(workflow: Path, config_path: Path | str) -> None:
    """Raise ``ValueError`` if the configuration names something missing, or the workflow's sessions fail."""
    from trellis_train.agents.tune.mapping import map_config
    from trellis_train.agents.tune.places import bring
    from trellis_train.agents.tune.program import WorkflowSource
    from trellis_train.agents.tune.services import Services
    from trellis_train.agents.tune.settings import load_config
    from trellis_train.agents.tune.trial import find_place_faults, find_session_faults

    # What is there to be found is the same on every machine.
    job, faults = bring(map_config(*load_config(config_path), platform="cpu"), has_weights=False)
    found, tasks = find_place_faults(job)
    faults += found
    if not faults:
        services = Services.of_job(job)
        faults = find_session_faults(WorkflowSource.read(str(workflow)), tasks, services=services, job=job)
    if faults:
        told = "; ".join(map(str, faults)) + "".join(f"\n{each.detail}" for each in faults if each.detail)
        raise ValueError(f"Invalid workflow or configuration: {told}")


def save(path: Path, workflow_func: Callable[..., Any], judge: Callable[..., Any] | None) -> None:
    """Write the functions to a file that the sandbox can load."""
    from trellis_train.agents.tune.program import write_pickle

    write_pickle(path, workflow_func, judge)


def run(
    config_path: Path | str, workflow: str, *, output: Path | str | None = None, resume: bool = False
) -> TuneResult:
    """Train a workflow that lies in a file; ``TuneFailed`` where that does not end well."""
    process = start(config_path, workflow, output=output, stderr=None, resume=resume)
    printed, _ = process.communicate()
    return read_outcome(process.returncode, printed, "see above")


def start(
    config_path: Path | str,
    workflow: str,
    *,
    output: Path | str | None,
    stderr: Any,
    folder: str | None = None,
    resume: bool = False,
) -> "subprocess.Popen[str]":
    """Start the training process; it stops at a checkpoint if this process ends.

    ``folder`` is what the configuration's relative paths start from; None for the current one.
    """
    command = [sys.executable, "-m", "trellis_cli", "tune", "run", str(config_path), workflow, "--json"]
    if output is not None:
        command += ["--output", str(output)]
    command += ["--resume"] if resume else []
    return subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=folder, preexec_fn=end_with_parent
    )


def read_outcome(exit_code: int, printed: str, reason: str) -> TuneResult:
    """Parse the outcome that the process printed; raise ``TuneFailed`` if it failed."""
    if exit_code != 0:
        raise TuneFailed(f"the training ended with exit code {exit_code}: {reason}")
    outcome = json.loads(printed)
    known = {each.name for each in fields(TuneResult)}
    return TuneResult(**{name: value for name, value in outcome.items() if name in known})


def end_with_parent() -> None:
    """Ask the kernel to end this process together with the one that started it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
