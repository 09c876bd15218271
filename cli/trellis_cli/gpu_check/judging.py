"""Whether a run of an engine did what it should, by its exit code and the events that it left."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import EVENTS_FOLDER

from trellis_cli.gpu_check.process import Ended


@dataclass
class Told:
    """What an attempt has told of itself."""

    #: Metrics by step.
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)
    #: The folders of the checkpoints by step.
    checkpoints: dict[int, Path] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    #: The reason that the outcome gives, where the run got so far.
    reason: str | None = None
    phase: str = "starting"

    @classmethod
    def by(cls, attempt: Path) -> "Told":
        """Read the event spool of an attempt."""
        told = cls()
        for file in sorted((attempt / EVENTS_FOLDER).glob("*.jsonl")):
            # A killed process may have left half a line.
            for line in file.read_bytes().rpartition(b"\n")[0].splitlines():
                told._take(json.loads(line))
        return told

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["kind"]
        if kind == "metrics":
            # NaN and infinities travel as strings.
            values = {name: float(value) for name, value in event["values"].items()}
            self.metrics.setdefault(event["step"], {}).update(values)
        elif kind == "checkpoint":
            self.checkpoints[event["step"]] = Path(event["path"])
        elif kind == "log":
            self.log += event["lines"]
        elif kind == "outcome":
            self.reason = event["reason"]
        elif kind == "progress":
            self.phase = event["phase"]


def find_problem(
    ended: Ended, told: Told, *, steps: int, losses: Sequence[str], gradient: str, limit_s: float
) -> str | None:
    """Return what is wrong with a run that should have made this many steps, or None.

    ``losses`` must be finite at every step, and so must the norm named ``gradient``, which must not be zero
    at all of them.
    """
    if ended.exit_code is None:
        return (
            f"timed out after {limit_s:g} s, killed (phase: {told.phase}, {len(told.metrics)} steps reported)"
        )
    if ended.exit_code:
        return told.reason or ended.last_words or f"exit code {ended.exit_code}"
    for step in range(1, steps + 1):
        if step not in told.metrics:
            return f"no metrics for step {step}"
        for name in (*losses, gradient):
            value = told.metrics[step].get(name)
            if value is None:
                return f"step {step} has no {name}"
            if not math.isfinite(value):
                return f"{name} is {value} at step {step}"
    if not any(told.metrics[step][gradient] for step in range(1, steps + 1)):
        return f"{gradient} is 0 at every step: nothing was trained"
    checkpoint = told.checkpoints.get(steps)
    if checkpoint is None:
        return f"no checkpoint for step {steps}"
    if not any(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file()):
        return f"the checkpoint {checkpoint} is empty"
    return None
