"""Which checkpoint a run of this machine goes on from, and which one is its newest."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_contracts.attempt import EVENTS_FOLDER, SPEC_FILE
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import get_recipe

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.local_job import LocalJob, list_attempts, locate_checkpoints
from trellis_cli.services.platform import python_command

Resume = Annotated[bool, typer.Option("--resume", help="Resume from the last checkpoint.")]
ResumeFrom = Annotated[
    Path | None,
    typer.Option("--resume-from-checkpoint", "--resume_from_checkpoint", help="Resume from this checkpoint."),
]
_PREFIX = "global_step_"
_HINT = "Use --resume or --resume-from-checkpoint, or choose another folder."
_NO_BASELINE = {"validate_before": False}


def choose_checkpoint(output: Path, recipe: str, *, resume: bool, resume_from: Path | None) -> Path | None:
    """Choose the checkpoint to resume from; None for a new run, whose folder must have no checkpoints."""
    if resume and resume_from is not None:
        raise Problem(
            "--resume and --resume-from-checkpoint are mutually exclusive", exit_code=ExitCode.USAGE
        )
    if resume_from is not None:
        return check_checkpoint(resume_from, recipe)
    if resume:
        return check_checkpoint(require_newest(output), recipe)
    refuse_second_run(output, _HINT)
    return None


def resume_job(job: LocalJob, checkpoint: Path | None) -> LocalJob:
    """Return the job resumed from a checkpoint, without a new baseline: that of the first run is kept."""
    if checkpoint is None:
        return job
    known = {parameter.name for parameter in get_recipe(job.recipe).parameters}
    changed = {name: value for name, value in _NO_BASELINE.items() if name in known}
    return replace(job, resume_from=checkpoint, params={**job.params, **changed})


def require_newest(output: Path) -> Path:
    """Return the newest checkpoint in a run's folder; raise ``Problem`` if there is none."""
    newest = find_newest(output)
    if newest is None:
        raise Problem(f"{output} contains no checkpoint to resume from", exit_code=ExitCode.USAGE)
    return newest


def refuse_second_run(output: Path, hint: str) -> None:
    """Raise ``Problem`` if a new run would start beside the checkpoints of another."""
    newest = find_newest(output)
    if newest is not None:
        raise Problem(
            f"{output} already contains checkpoints, the last at step {step_of(newest)}",
            hint=hint,
            exit_code=ExitCode.USAGE,
        )


def check_checkpoint(folder: Path, recipe: str) -> Path:
    """Return the folder; raise ``Problem`` if a run of the recipe cannot resume from it."""
    engine: Engine = get_recipe(recipe).engine
    ask("trellis_train.hooks.resuming", str(folder), engine.value)
    return folder


def ask(module: str, *arguments: str) -> None:
    """Run a module of ours on a checkpoint; its complaint as a problem."""
    command = python_command("-m", module, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own module
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["the checkpoint is not usable"])[-1]
        raise Problem(reason, exit_code=ExitCode.USAGE)


def find_newest(output: Path) -> Path | None:
    """Find the checkpoint that the last attempt saved or started from; None if there is none.

    Not always that of the highest step: an attempt may have resumed from an earlier one.
    """
    there = {each.name: each for each in locate_checkpoints(output).glob(f"{_PREFIX}*") if step_of(each) > 0}
    for attempt in reversed(list_attempts(output)):
        for name in _names_of(attempt):
            if name in there:
                return there[name]
    return max(there.values(), key=step_of, default=None)


def step_of(folder: Path) -> int:
    """Return the step of a checkpoint folder; 0 for other folders."""
    number = folder.name.removeprefix(_PREFIX)
    return int(number) if number.isdigit() else 0


def _names_of(attempt: Path) -> Iterator[str]:
    """Yield the checkpoints that an attempt saved, the last first, then the one it started from."""
    saved: list[Path] = []
    for file in (attempt / EVENTS_FOLDER).glob("*.jsonl"):
        with file.open("rb") as lines:
            saved += [Path(event["path"]) for event in map(_as_checkpoint, lines) if event is not None]
    yield from (path.name for path in sorted(saved, key=step_of, reverse=True))
    try:
        spec = json.loads((attempt / SPEC_FILE).read_text())
    except FileNotFoundError:
        return
    start = spec.get("resume_from")
    if start and Path(start).parent == Path(spec["checkpoint_dir"]):
        yield Path(start).name


def _as_checkpoint(line: bytes) -> dict[str, Any] | None:
    """Parse a line that was written completely; return its event if it is a checkpoint event."""
    if b'"checkpoint"' not in line or not line.endswith(b"\n"):
        return None
    event: dict[str, Any] = json.loads(line)
    return event if event["kind"] == "checkpoint" else None
