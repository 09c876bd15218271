"""verl's SFT trainer, telling the platform what it does and leaving at a checkpoint when asked."""

import math
from typing import Any

import torch
from torch.utils.data import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from trellis_contracts.events import MetricsEvent, Phase, ProgressEvent
from verl.trainer.sft_trainer import SFTTrainer

from trellis_train.hooks.checkpoints import describe_checkpoint, locate_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool, is_stop_requested
from trellis_train.hooks.process_spans import Span
from trellis_train.hooks.rank_spans import find_own_place, gather_lanes
from trellis_train.hooks.timeline import PhaseTimes, describe_step, is_due

#: Phases beside the steps, under the names that verl's other trainers give them.
VALIDATION, SAVING = "testing", "save_checkpoint"


def perplexity_of(values: dict[str, float]) -> dict[str, float]:
    """Compute the perplexity on held-out rows if their loss was measured."""
    loss = values.get("val/loss")
    if loss is None:
        return {}
    try:
        return {"val/perplexity": math.exp(loss)}
    except OverflowError:
        return {"val/perplexity": math.inf}


def timing_of(times: PhaseTimes, values: dict[str, float]) -> dict[str, float]:
    """Return how long each phase of a step took, for its metrics; for a validation, only its own time."""
    if "val/loss" in values:
        return times.take(VALIDATION)
    return times.take()


class ReportingSFTTrainer(SFTTrainer):
    """Reports to ``spool`` (on the first rank; None on the others) and obeys the stop file."""

    total_training_steps: int

    def __init__(self, config: Any, spool: Spool | None, times: PhaseTimes | None = None) -> None:
        self._spool = spool
        self._times = times or PhaseTimes()
        self.is_stopping = False
        self._step = 0
        self._is_validating = False
        super().__init__(config)
        self._planned_steps = int(self.total_training_steps)
        self._step = int(self.resume_global_step)
        self._train_batch = self.training_client.train_batch
        self._infer_batch = self.training_client.infer_batch
        self._save = self.ckpt_handler.save_checkpoint
        self.training_client.train_batch = self._train_and_report
        self.training_client.infer_batch = self._infer_and_report
        self.ckpt_handler.save_checkpoint = self._save_and_report

    def run(self) -> None:
        """Train from the checkpoint, if there is one, to the last step or to a stop."""
        self._report("training")
        self._times.restart()
        if self._step < self._planned_steps:  # verl would add a step to a run that is complete
            self.fit()
        self._report_timeline(self._times.spans)
        if not self.is_stopping:
            self._report("finished")

    # -- what verl's trainer leaves to wish for --------------------------------------------

    def _build_dataloader(self) -> None:
        super()._build_dataloader()
        if len(self.train_dataloader) == 0:
            raise ValueError(
                f"The dataset has {len(self.train_dataset)} examples, fewer than the batch size of "
                f"{self.global_batch_size}: add data or reduce the batch size."
            )
        # verl's data order is the same whatever the seed.
        self.train_sampler.seed = int(self.config.trainer.seed)
        if self.val_dataset:
            self.val_dataloader = self._make_validation_loader()

    def _make_validation_loader(self) -> Any:
        """Create a loader of all rows: verl drops those that do not fill a training batch, even all of them.

        Here the rows are spread evenly over their batches, as the loss is a mean of batches.
        """
        ranks = self.engine.get_data_parallel_size()
        sampler: DistributedSampler[Any] = DistributedSampler(
            self.val_dataset,
            shuffle=False,
            num_replicas=ranks,
            rank=self.engine.get_data_parallel_rank(),
            drop_last=len(self.val_dataset) >= ranks,
        )
        rows = max(1, len(sampler))
        if self.config.data.use_dynamic_bsz:
            size = math.ceil(rows / math.ceil(rows / self.train_batch_size_per_dp))
        else:  # verl wants whole passes
            size = min(rows, int(self.config.data.micro_batch_size_per_gpu))
        return StatefulDataLoader(
            dataset=self.val_dataset,
            batch_size=size,
            sampler=sampler,
            collate_fn=self.collate_fn,
            num_workers=self.config.data.num_workers,
            drop_last=not self.config.data.use_dynamic_bsz,
        )

    def _build_ckpt_handler(self) -> None:
        super()._build_ckpt_handler()
        load_dataloader = self.ckpt_handler._load_dataloader_state

        def load_within_epoch(checkpoint_path: str) -> None:
            # Saved at the end of an epoch, the loader's state is "nothing left": verl would
            # then skip the next epoch instead of beginning it.
            if self.ckpt_handler.resume_global_step % self.steps_per_epoch:
                load_dataloader(checkpoint_path)

        self.ckpt_handler._load_dataloader_state = load_within_epoch

    # -- where verl calls ------------------------------------------------------------------

    def _train_and_report(self, data: Any) -> Any:
        self._report_timeline(self._times.begin_step())
        with self._times.measure("train_batch"):
            output = self._train_batch(data=data)
        self._step += 1
        self._is_validating = False
        self._report("training")
        if self._step < self._planned_steps and self._is_asked_to_stop():
            # verl has no stop flag; its loop ends by itself, with a checkpoint, at the last step.
            self.is_stopping = True
            self.total_training_steps = self._step
            # A stop isn't kept waiting for a validation, for which verl asks at the last step where it has
            # rows, and at every step that the frequency divides, with rows or without.
            self.val_dataloader, self.test_freq = None, -1
        return output

    def _infer_and_report(self, data: Any) -> Any:
        if not self._is_validating:
            self._is_validating = True
            self._report("validating")
        with self._times.measure(VALIDATION):
            return self._infer_batch(data)

    def _save_and_report(self, step: int) -> None:
        self._report("saving")
        with self._times.measure(SAVING):
            self._save(step)
        took = self._times.take(SAVING)
        if self._spool is not None:
            self._spool.write(MetricsEvent(time=now(), step=step, values=took))
            folder = locate_step(self.config.trainer.default_local_dir, step)
            self._spool.write(describe_checkpoint(folder, step=step))

    def _is_asked_to_stop(self) -> bool:
        """Return whether a stop is requested, equal on all ranks: a lone rank would wait forever."""
        is_asked = is_stop_requested()
        if torch.distributed.get_world_size() == 1:
            return is_asked
        flag = torch.tensor([int(is_asked)])
        torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
        return bool(flag.item())

    def _report_timeline(self, spans: list[Span]) -> None:
        """Tell what the step that is over consisted of on each rank, where its turn has come."""
        if self._step < 1 or not is_due(self._step, self._planned_steps):
            return
        ranks = gather_lanes(spans)
        if self._spool is None:
            return
        event = describe_step(self._step, spans, place=find_own_place(), ranks=ranks)
        if event is not None:
            self._spool.write(event)

    def _report(self, phase: Phase) -> None:
        if self._spool is not None:
            event = ProgressEvent(time=now(), phase=phase, step=self._step, total_steps=self._planned_steps)
            self._spool.write(event)
