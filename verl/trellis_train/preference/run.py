"""Builds one of TRL's trainers from settings and runs it to its end or to a stop."""

import importlib
import math
import shutil
from typing import Any

from trellis_recipes.trl_schema import TRAINERS

from trellis_train.hooks.checkpoints import find_step
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.stop import StoppedByRequest
from trellis_train.preference.datasets import load_datasets, locate_cache
from trellis_train.preference.model import load_model, load_tokenizer
from trellis_train.preference.settings import Settings


class NoRowsLeft(ValueError):
    """The trainer dropped every row."""


def run(settings: Settings, spool: Spool | None = None, attempt_dir: str | None = None) -> bool:
    """Train to the last step or to a stop; whether it was a stop."""
    try:
        trainer = build_trainer(settings, spool, attempt_dir)
    except StoppedByRequest:  # there is nothing to checkpoint yet
        shutil.rmtree(locate_cache(settings), ignore_errors=True)
        return True
    start, planned = settings.arguments.resume_from_checkpoint, count_steps(trainer)
    if find_step(start) < planned:
        trainer.train(resume_from_checkpoint=start)
    else:  # the trainer would add a step to a run that is complete
        trainer.state.global_step = trainer.state.max_steps = planned
    if not trainer.is_stopping:
        trainer.report_progress("finished")
    trainer.accelerator.wait_for_everyone()
    if trainer.accelerator.is_main_process:
        shutil.rmtree(locate_cache(settings), ignore_errors=True)
    return bool(trainer.is_stopping)


def build_trainer(settings: Settings, spool: Spool | None, attempt_dir: str | None) -> Any:
    """Build the trainer with its model, tokenizer and rows, ready to run."""
    from trl import get_peft_config

    from trellis_train.preference.reference_free import without_reference
    from trellis_train.preference.reporting import with_reporting

    module, name = TRAINERS[settings.recipe].trainer
    trainer_class = getattr(importlib.import_module(module), name)
    if settings.is_reference_free:
        trainer_class = without_reference(trainer_class)
    tokenizer, model = load_tokenizer(settings), load_model(settings)
    train, validation = load_datasets(settings, tokenizer)
    if validation is None:
        # The trainer insists on rows wherever it is to measure, and sampling may have left none.
        settings.arguments.eval_strategy, settings.arguments.eval_on_start = "no", False
    trainer = with_reporting(trainer_class, spool, attempt_dir)(
        model=model,
        args=settings.arguments,
        train_dataset=train,
        eval_dataset=validation,
        processing_class=tokenizer,
        peft_config=get_peft_config(settings.model),
    )
    if len(trainer.train_dataset) == 0:
        limit = settings.arguments.max_length
        raise NoRowsLeft(f"No rows left to train on: all are longer than {limit} tokens (max_length).")
    return trainer


def count_steps(trainer: Any) -> int:
    """Count the steps of the whole run."""
    if trainer.args.max_steps > 0:
        return int(trainer.args.max_steps)
    passes = len(trainer.get_train_dataloader())
    return math.ceil(
        trainer.args.num_train_epochs * math.ceil(passes / trainer.args.gradient_accumulation_steps)
    )
