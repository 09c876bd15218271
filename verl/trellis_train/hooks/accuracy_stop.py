"""Ending a run by its accuracy: at a target, or when it has not grown for some evaluations.

An evaluation is a validation after a training step; what is measured before the first step, or again when
a run is resumed, is none. Each improvement keeps its checkpoint: ``best_checkpoint.json`` names it, and its
files lie in ``best/`` too (as hard links), where verl's pruning of old checkpoints does not reach them.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_data.atomic_files import write_atomically

from trellis_train.agents.linksearch.checkpoints import link_or_copy, write_checkpoint
from trellis_train.hooks.agent_metrics import derive_agent_metrics
from trellis_train.hooks.checkpoints import locate_step
from trellis_train.hooks.metrics import to_scalars

ACCURACY = "eval/accuracy"
BEST_FILE, BEST_FOLDER, EVALUATIONS_FILE = "best_checkpoint.json", "best", "evaluations.jsonl"


@dataclass(frozen=True)
class Evaluation:
    """What was measured after a step."""

    step: int
    accuracy: float


@dataclass
class Standing:
    """The best so far, and how long ago it was."""

    best: Evaluation | None = None
    #: Evaluations since the best.
    waited: int = 0

    def take(self, evaluation: Evaluation) -> bool:
        """Add an evaluation and tell whether it is a strict improvement."""
        if self.best is None or evaluation.accuracy > self.best.accuracy:
            self.best, self.waited = evaluation, 0
            return True
        self.waited += 1
        return False

    def is_over(self, *, target: float | None, patience: int) -> bool:
        """Tell whether the target is reached, or patience (0: endless) has run out."""
        reached = target is not None and self.best is not None and self.best.accuracy >= target
        return reached or 0 < patience <= self.waited


def read_standing(folder: Path, *, until: int) -> Standing:
    """Read the run's state at step ``until``; drop later evaluations, which are of an abandoned run."""
    standing, path = Standing(), folder / EVALUATIONS_FILE
    kept = [each for each in _read(path) if each.step <= until]
    for each in kept:
        standing.take(each)
    if path.exists():
        write_atomically(path, "".join(json.dumps(asdict(each)) + "\n" for each in kept))
    return standing


def _read(path: Path) -> list[Evaluation]:
    if not path.exists():
        return []
    # The last line may be cut off by the end of the machine.
    lines = path.read_text().split("\n")[:-1]
    return [Evaluation(**json.loads(line)) for line in lines if line]


def ending_by_accuracy(*, target: float | None, patience: int, params: dict[str, Any]) -> type[Any]:
    """Return the mixin for verl's trainer; ``params`` are saved with its checkpoints."""
    settings = {"target": target, "patience": patience, "params": params}
    return type("EndingByAccuracy", (_EndingByAccuracy,), {"settings": settings})


class _EndingByAccuracy:
    settings: dict[str, Any]
    config: Any
    global_steps: Any
    total_training_steps: Any
    _standing: Standing | None = None
    _saved_step: int | None

    @property
    def _checkpoints(self) -> Path:
        return Path(self.config.trainer.default_local_dir)

    def on_train_begin(self) -> None:
        super().on_train_begin()  # type: ignore[misc]
        self._standing = read_standing(self._checkpoints, until=int(self.global_steps) - 1)

    def _validate(self) -> Any:
        metrics = super()._validate()  # type: ignore[misc]
        if self._standing is not None:
            accuracy = derive_agent_metrics(to_scalars(metrics), int(self.global_steps)).get(ACCURACY)
            if accuracy is not None:
                self._judge(self._standing, Evaluation(int(self.global_steps), accuracy))
        return metrics

    def _judge(self, standing: Standing, evaluation: Evaluation) -> None:
        is_best = standing.take(evaluation)
        with (self._checkpoints_made() / EVALUATIONS_FILE).open("a") as file:
            file.write(json.dumps(asdict(evaluation)) + "\n")
        is_over = standing.is_over(target=self.settings["target"], patience=self.settings["patience"])
        if (is_best or is_over) and self._saved_step != self.global_steps:
            self._save_checkpoint()
        elif self._saved_step == self.global_steps:
            self._describe()  # what it says of the accuracy is now known
        if is_best:
            self._keep_best(evaluation)
        if is_over or evaluation.step >= self.total_training_steps:
            self._describe(name="final")
        if is_over:  # verl's loop ends after this step, with its metrics logged
            self.total_training_steps = self.global_steps

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()  # type: ignore[misc]
        self._describe()
        if self.global_steps >= self.total_training_steps:  # also of a run that measures nothing
            self._describe(name="final")

    def _describe(self, *, name: str | None = None) -> None:
        step, standing = int(self.global_steps), self._standing or Standing()
        write_checkpoint(
            self._checkpoints / (name or f"checkpoint-{step}"),
            locate_step(self._checkpoints, step),
            base=Path(self.config.actor_rollout_ref.model.path),
            step=step,
            params=self.settings["params"],
            best=asdict(standing.best) if standing.best else None,
            waited=standing.waited,
        )

    def _keep_best(self, evaluation: Evaluation) -> None:
        """Link the checkpoint's files into ``best/`` and name it; the one before goes last."""
        source, folder = locate_step(self._checkpoints, evaluation.step), self._checkpoints / BEST_FOLDER
        target = folder / source.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=link_or_copy)
        note = {**asdict(evaluation), "path": str(target)}
        write_atomically(self._checkpoints / BEST_FILE, json.dumps(note, indent=2) + "\n")
        for other in folder.iterdir():
            if other != target:
                shutil.rmtree(other)

    def _checkpoints_made(self) -> Path:
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        return self._checkpoints
