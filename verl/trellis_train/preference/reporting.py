"""TRL's trainers, telling the platform what they do and leaving at a checkpoint when asked.

Only overridable methods of transformers' ``Trainer`` are used, so every trainer reports alike.
"""

# ruff: noqa: ARG002  (the signatures are transformers')
import json
import os
import shutil
from pathlib import Path
from typing import Any, cast

import torch
from transformers import TrainerCallback
from transformers.trainer import TRAINER_STATE_NAME, TRAINING_ARGS_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trellis_contracts.events import MetricsEvent, Phase, ProgressEvent

from trellis_train.hooks.checkpoints import describe_checkpoint, locate_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool, is_stop_requested
from trellis_train.hooks.metrics import to_scalars
from trellis_train.hooks.rank_spans import find_own_place, gather_lanes
from trellis_train.hooks.stop import StoppedByRequest
from trellis_train.hooks.timeline import PhaseTimes, describe_step, is_due

#: In a checkpoint: a model that can be loaded as it is, or an adapter that needs its base.
MODEL_FOLDER, ADAPTER_FOLDER = "huggingface", "lora_adapter"
#: Checkpoints are written here and moved to their place when they are complete.
STAGING_FOLDER = ".unfinished"


def with_reporting(trainer_class: type[Any], spool: Spool | None, attempt_dir: str | None) -> type[Any]:
    """Create a subclass that reports to ``spool`` (first rank; None elsewhere) and obeys the stop file."""
    fields = {"spool": spool, "attempt_dir": attempt_dir}
    bases = (_Reporting, trainer_class)
    return cast("type[Any]", type(f"Reporting{trainer_class.__name__}", bases, fields))


class _Reporting:
    """Mixed in before one of TRL's trainers; ``Any`` stands for the trainer's own attributes."""

    spool: Spool | None
    attempt_dir: str | None
    is_stopping: bool = False
    #: Of the newest checkpoint: the one that this attempt resumed from, or the last one that it saved.
    saved_step: int = 0
    _is_built: bool = False
    args: Any
    state: Any
    accelerator: Any
    control: Any
    model: Any
    eval_dataset: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.times = PhaseTimes()
        super().__init__(*args, **kwargs)
        self._is_built = True
        self.add_callback(_Watch(self))  # type: ignore[attr-defined]

    # -- what it reports -------------------------------------------------------------------

    def report_progress(self, phase: Phase) -> None:
        if self.spool is not None:
            total = self.state.max_steps or None
            event = ProgressEvent(time=now(), phase=phase, step=self.state.global_step, total_steps=total)
            self.spool.write(event)

    def report_metrics(self, logs: dict[str, Any]) -> None:
        """Report a line of the trainer's log, except the summary of the whole run."""
        if self.spool is None or "train_runtime" in logs:
            return
        values = to_scalars(logs)
        if any(name.startswith("eval_") for name in values):
            values.pop("epoch", None)  # the step's own line has it
        else:
            values |= self.times.take()
        self.spool.write(MetricsEvent(time=now(), step=self.state.global_step, values=values))

    def report_time_of(self, phase: str) -> None:
        """Report the seconds of a phase that belongs to no step."""
        took = self.times.take(phase)
        if self.spool is not None:
            self.spool.write(MetricsEvent(time=now(), step=self.state.global_step, values=took))

    def report_timeline(self) -> None:
        """Begin a step; what the one before consisted of is told where its turn has come."""
        spans, step = self.times.begin_step(), self.state.global_step
        if step < 1 or not is_due(step, self.state.max_steps):
            return
        ranks = gather_lanes(spans)
        if self.spool is None:
            return
        event = describe_step(step, spans, place=find_own_place(), ranks=ranks)
        if event is not None:
            self.spool.write(event)

    def is_asked_to_stop(self) -> bool:
        """Return whether a stop is requested, equal on all ranks: a lone rank would wait forever."""
        is_asked = self.attempt_dir is not None and is_stop_requested(self.attempt_dir)
        if self.accelerator.num_processes == 1:
            return is_asked
        flag = torch.tensor([int(is_asked)], device=self.accelerator.device)
        return bool(self.accelerator.gather(flag).max().item())

    # -- where the trainer calls -----------------------------------------------------------

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate like the trainer, but a stop does not wait until it ends: the run saves and exits."""
        self.report_progress("validating")
        try:
            with self.times.measure("testing"):
                found = super().evaluate(*args, **kwargs)  # type: ignore[misc]
            self.report_time_of("testing")
            if self.state.global_step == 0:  # later the next step says so, within its own time
                self.report_progress("training")
            return found
        except _MeasuringEnded:
            self.is_stopping = True
            self.control.should_save = self.control.should_training_stop = True
            return {}

    def compute_ref_log_probs(self, *args: Any, **kwargs: Any) -> Any:
        """Compute a batch's log-probabilities under the initial model.

        A trainer that computes all of them in advance does so while it is built, which may take minutes:
        ``StoppedByRequest`` soon after a stop is asked for.
        """
        if not self._is_built and self.is_asked_to_stop():
            raise StoppedByRequest
        return super().compute_ref_log_probs(*args, **kwargs)  # type: ignore[misc]

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: TRL would write one into the checkpoints' folder, with names of its own."""

    def _get_output_dir(self, trial: Any) -> str:
        del trial
        return str(Path(self.args.output_dir) / STAGING_FOLDER)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        if output_dir is not None and _internal_call:
            output_dir = os.path.join(output_dir, self._weights_folder)
        super().save_model(output_dir, _internal_call)  # type: ignore[misc]

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self.report_progress("saving")
        with self.times.measure("save_checkpoint"):
            super()._save_checkpoint(model, trial)  # type: ignore[misc]
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                self._publish()
            self.accelerator.wait_for_everyone()
        self.saved_step = self.state.global_step
        self.report_time_of("save_checkpoint")

    def _publish(self) -> None:
        """Move the checkpoint to its place, complete."""
        step = self.state.global_step
        written = Path(self._get_output_dir(None)) / f"{PREFIX_CHECKPOINT_DIR}-{step}"
        # A pickle of the trainer's arguments, which no model needs.
        (written / self._weights_folder / TRAINING_ARGS_NAME).unlink(missing_ok=True)
        place = locate_step(self.args.output_dir, step)
        if place.exists():  # of an attempt that came further than the checkpoint this one resumed from
            shutil.rmtree(place)
        written.rename(place)
        # With what attempts that were killed while they saved have left there.
        shutil.rmtree(written.parent)
        if self.spool is not None:
            self.spool.write(describe_checkpoint(place, step=step))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        weights = os.path.join(resume_from_checkpoint, self._weights_folder)
        super()._load_from_checkpoint(weights, model)  # type: ignore[misc]
        self._restore_token_count(Path(resume_from_checkpoint))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if self.args.device.type == "cpu":
            # accelerate numbers the CPU of a rank, and torch restores nothing to a numbered one.
            self.args._setup_devices = torch.device("cpu")
        super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]

    def _restore_token_count(self, checkpoint: Path) -> None:
        """Restore TRL's count of tokens that it has trained on, which it forgets at a restart."""
        if not hasattr(self, "_total_train_tokens"):
            return
        history = json.loads((checkpoint / TRAINER_STATE_NAME).read_text())["log_history"]
        counts = [line["num_tokens"] for line in history if "num_tokens" in line]
        self._total_train_tokens = counts[-1] if counts else 0

    @property
    def _weights_folder(self) -> str:
        is_adapter = hasattr(self.accelerator.unwrap_model(self.model), "peft_config")
        return ADAPTER_FOLDER if is_adapter else MODEL_FOLDER


class _MeasuringEnded(Exception):
    """A stop was asked for in the middle of an evaluation, which may take longer than the training."""


class _Watch(TrainerCallback):
    """Passes on to the trainer what happens in its loop."""

    def __init__(self, trainer: _Reporting) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer.report_progress("training")
        self._trainer.saved_step = state.global_step
        self._trainer.times.restart()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer.report_timeline()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer.times.mark("forward_backward")

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer.times.mark("optimizer")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer.report_timeline()

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer.report_metrics(kwargs["logs"])

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Gradients of the unfinished step are dropped: the weights are those of the step before.
        if self._trainer.is_asked_to_stop():
            self._trainer.is_stopping = True
            control.should_save = state.global_step > self._trainer.saved_step
            control.should_training_stop = True

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._trainer.is_asked_to_stop():
            raise _MeasuringEnded

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        trainer = self._trainer
        trainer.report_progress("training")
        if state.global_step >= state.max_steps:
            control.should_save = True
            control.should_evaluate = trainer.eval_dataset is not None
        elif trainer.is_asked_to_stop():
            trainer.is_stopping = True
            control.should_save = True
            control.should_training_stop = True
