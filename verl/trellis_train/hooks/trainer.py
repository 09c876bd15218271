"""verl's PPO trainers, telling the platform what they do and leaving at a checkpoint when asked.

Only overridable methods of the trainer are used, so every trainer mode (sync,
colocated and separate asynchronous) reports alike.
"""

from functools import partial
from typing import Any, cast

from omegaconf import OmegaConf
from trellis_contracts.events import Phase, ProgressEvent, Split

from trellis_train.compat.ratios import RATIO_MEAN
from trellis_train.hooks.checkpoints import describe_checkpoint, locate_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.engine_loads import (
    Sample,
    cut_loads,
    end_loads,
    measure_loads,
    take_loads,
)
from trellis_train.hooks.event_spool import Spool, is_stop_requested
from trellis_train.hooks.group_metrics import measure_groups
from trellis_train.hooks.hacking_signals import measure_hacking
from trellis_train.hooks.live_probes import LiveProbes
from trellis_train.hooks.process_spans import find_place
from trellis_train.hooks.reward_errors import check_rewards
from trellis_train.hooks.rollouts import collect_rollouts
from trellis_train.hooks.signals import IMPORTANCE_WEIGHT_MEAN, Signals, collect_signals
from trellis_train.hooks.step_responses import StepResponses, read_step
from trellis_train.hooks.stop import StoppedByRequest
from trellis_train.hooks.timeline import (
    TESTING,
    Lane,
    ResponseLife,
    Timings,
    describe_step,
    is_due,
    measure_responses,
)
from trellis_train.hooks.token_traces import TRACE_SECONDS, TokenTracer, TokenTracing, find_extremes
from trellis_train.hooks.trained_columns import send_trained_columns
from trellis_train.hooks.watching import watch
from trellis_train.hooks.worker_spans import measure_busy, take_lanes, time_all_workers
from trellis_train.rollout.sample_ids import PromptNames, sort_samples

#: The trainer looks for answered prompts this often where nobody tells it of any; verl does every 2 s.
POLL_INTERVAL_S = 0.5
#: Where the pass before the updates is saved, what it measures is measured in the updates: the policy's
#: entropy, and the trainer's probabilities over the rollout engine's, against which the ratio is then taken.
MEASURED_IN_UPDATES = {"actor/entropy": "actor/entropy_loss", IMPORTANCE_WEIGHT_MEAN: RATIO_MEAN}
#: Where the configuration has the rewards.
REWARDS_KEY = "reward.custom_reward_function.reward_kwargs.rewards"


def with_hooks(trainer_cls: type[Any], spool: Spool, mixins: tuple[type[Any], ...] = ()) -> type[Any]:
    """Create a subclass of verl's ``trainer_cls`` that reports to ``spool`` and obeys the stop file.

    ``mixins`` are what the algorithm needs besides (``hooks.algorithms``).
    """
    bases: tuple[type[Any], ...] = (_ReportingTrainer, *mixins, trainer_cls)
    return cast("type[Any]", type(f"Reporting{trainer_cls.__name__}", bases, {"spool": spool}))


def list_rewards(config: Any) -> list[dict[str, Any]]:
    """Return the rewards of the mixture; empty if the run has others (an agent's own)."""
    own = OmegaConf.select(config, REWARDS_KEY) or []
    plain = OmegaConf.to_container(own, resolve=True) if OmegaConf.is_config(own) else own
    return cast("list[dict[str, Any]]", plain)


class _ReportingTrainer:
    """Mixed in before one of verl's trainers; ``Any`` stands for the trainer's own attributes."""

    spool: Spool
    is_stopping: bool = False
    global_steps: Any
    total_training_steps: Any = None
    config: Any
    tokenizer: Any
    agent_loop_manager: Any
    checkpoint_manager: Any
    reward_loop_manager: Any
    trainer_mode: str
    _saved_step: int | None = None
    #: Whether the validation of the initial model is over, before which there is nothing to checkpoint.
    _has_begun: bool = False
    #: Names of the mixture's rewards, the one that decides what is right first.
    _terms: tuple[str, ...] = ()
    _probes: LiveProbes | None = None
    _tracer: TokenTracer | None = None
    _timings: Timings | None = None
    #: What was planned, once a stop has lowered ``total_training_steps``.
    _planned_steps: int | None = None

    # -- what it reports -------------------------------------------------------------------

    def report_progress(self, phase: Phase, *, step: int) -> None:
        planned = self._planned_steps or self.total_training_steps
        total = None if planned is None else int(planned)
        self.spool.write(ProgressEvent(time=now(), phase=phase, step=step, total_steps=total))

    def _report_rollouts(self, batch: Any, split: Split, tracing: TokenTracing | None = None) -> None:
        probes, step = self._probes, self.global_steps
        is_probed = split == "train" and probes is not None and probes.is_due(step)
        event = collect_rollouts(
            batch=batch,
            tokenizer=self.tokenizer,
            step=step,
            split=split,
            max_response_tokens=self.config.data.max_response_length,
            tracing=tracing,
            probe=partial(probes.start, step) if is_probed and probes is not None else None,
        )
        self.spool.write(event)

    @property
    def timing_raw(self) -> dict[str, float]:
        """Seconds by phase of the step, where verl's timers put them."""
        return {} if self._timings is None else self._timings

    @timing_raw.setter
    def timing_raw(self, values: dict[str, float]) -> None:
        self._timings = Timings(values)

    def _report_timeline(self, responses: StepResponses) -> dict[str, float]:
        """Tell what the step consisted of, where its turn has come; metrics of responses and engines."""
        measured = _list_lives(responses)
        timings = self._timings
        busy: dict[str, float] = {}
        loads = watch("the load of rollout engines", lambda: take_loads(self), list[list[Sample]]())
        if timings is not None:
            loads = cut_loads(loads, timings.started_at)
        if timings is not None and is_due(self.global_steps, self.total_training_steps):
            others = watch("the spans of processes", lambda: take_lanes(self), list[Lane]())
            event = describe_step(
                self.global_steps,
                timings.spans,
                started_at=timings.started_at,
                place=find_place(),
                responses=measured,
                loads=loads,
                others=others,
            )
            if event is not None:
                self.spool.write(event)
            busy = measure_busy(others, timings)
        # verl validates before it computes the metrics of the step.
        spans = [] if timings is None else timings.spans
        validated_at = [start for phase, start, _ in spans if phase == TESTING]
        trained = end_loads(loads, validated_at[0]) if validated_at else loads
        return (
            measure_responses([(each.start, each.end) for each in measured]) | measure_loads(trained) | busy
        )

    # -- where verl calls ------------------------------------------------------------------

    def _build_replay_buffer(self) -> Any:
        self._prompt_names = PromptNames()
        buffer = super()._build_replay_buffer()  # type: ignore[misc]

        def wait_for_answers(partition_id: str, last_debug_time: float) -> float:
            if partition_id == "val" and not self._has_begun:
                self._leave_if_asked()
            self.agent_loop_manager.wait_for_news(POLL_INTERVAL_S)
            return last_debug_time

        buffer._wait_for_next_poll = wait_for_answers
        sample = buffer.sample

        def sample_and_report(*args: Any, **kwargs: Any) -> Any:
            batch, metrics = sample(*args, **kwargs)
            if self.trainer_mode == "sync":
                sort_samples(batch)
            # Validation scores exist already, unless a colocated reward model computes them later.
            if (
                batch.partition_id == "val"
                and self.reward_loop_manager.reward_loop_worker_handles is not None
            ):
                self._report_rollouts(batch, "validation")
            return batch, metrics

        buffer.sample = sample_and_report
        return buffer

    def _fetch_one_gen_batch(self) -> Any:
        batch = super()._fetch_one_gen_batch()  # type: ignore[misc]
        if self.trainer_mode == "sync":  # elsewhere prompts outlive their step, and a resumed run
            from verl.utils.tensordict_utils import assign_non_tensor_stack

            names = self._prompt_names.take(self.global_steps, len(batch))
            assign_non_tensor_stack(batch, "uid", names)
        return batch

    def _compute_reward_colocate(self, batch: Any, metrics: Any = None) -> Any:
        batch = super()._compute_reward_colocate(batch, metrics)  # type: ignore[misc]
        if batch.partition_id == "val":
            self._report_rollouts(batch, "validation")
        return batch

    def _init_dataloader(self) -> None:
        try:
            super()._init_dataloader()  # type: ignore[misc]
        except ValueError as error:
            # What PyTorch's sampler says of no rows; verl has left out all whose prompts are too long.
            if "num_samples" not in str(error):
                raise
            longest = self.config.data.max_prompt_length
            raise ValueError(
                f"No row is left to train on: all prompts have more than {longest} tokens "
                "(max_prompt_length). Raise it, or shorten the prompts."
            ) from error
        self.report_progress("loading", step=0)
        self._leave_if_asked()

    def on_init_end(self) -> None:
        super().on_init_end()  # type: ignore[misc]
        send_trained_columns(self)
        watch("the phases of workers", lambda: time_all_workers(self), None)
        rewards = list_rewards(self.config)
        self._terms = tuple(reward["name"] for reward in rewards)
        self._probes = watch(
            "probes of the rewards", lambda: LiveProbes.of_rewards(rewards, self.spool), None
        )
        self._leave_if_asked()

    def on_train_begin(self) -> None:
        super().on_train_begin()  # type: ignore[misc]
        self._leave_if_asked()
        self._has_begun = True
        self.report_progress("training", step=self.global_steps - 1)

    def on_validate_begin(self) -> None:
        if not self.is_stopping:
            self.report_progress("validating", step=self.global_steps)
        super().on_validate_begin()  # type: ignore[misc]

    def _validate(self) -> Any:
        """Validate, except after the step with which a stop ends the run: it isn't kept waiting for that."""
        return {} if self.is_stopping else super()._validate()  # type: ignore[misc]

    def on_validate_end(self) -> None:
        super().on_validate_end()  # type: ignore[misc]
        # Otherwise a stop that came meanwhile would wait for the whole next step. Where responses are sampled
        # ahead, replicas can't sleep before these are there, so the next step is waited for.
        if self.trainer_mode == "sync" and self._has_begun and self._is_asked_to_end():
            self.checkpoint_manager.sleep_replicas()  # as in a step, they leave the memory to the checkpoint
            self._end_with_this_step()

    def _compute_metrics(self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super()._compute_metrics(batch, metrics, *args, **kwargs)  # type: ignore[misc]
        correction = self.config.algorithm.get("rollout_correction") or {}
        has_trainer_log_probs = not correction.get("bypass_mode", False)
        responses = read_step(batch)
        metrics.update(check_rewards(responses.infos, step=self.global_steps))
        signals = watch(
            "differences of log-probabilities",
            lambda: collect_signals(batch, has_trainer_log_probs=has_trainer_log_probs),
            Signals({}),
        )
        metrics.update(signals.metrics)
        if not has_trainer_log_probs:
            # Nothing of it while a critic learns alone.
            found = {name: metrics.get(source) for name, source in MEASURED_IN_UPDATES.items()}
            metrics.update({name: value for name, value in found.items() if value is not None})
        metrics.update(watch("groups of responses", lambda: measure_groups(responses), dict[str, float]()))
        metrics.update(
            watch(
                "signs of reward hacking",
                lambda: measure_hacking(responses, terms=self._terms),
                dict[str, float](),
            )
        )
        metrics.update(
            watch("the time of a step", lambda: self._report_timeline(responses), dict[str, float]())
        )
        tracer = self._tracer = self._tracer or TokenTracer(self.tokenizer)
        tracing = watch(
            "tokens",
            lambda: tracer.plan(
                self.global_steps,
                self.total_training_steps,
                signals.extreme,
                metrics,
                lambda measures: find_extremes(batch, measures),
                has_trainer_log_probs=has_trainer_log_probs,
            ),
            None,
        )
        self._report_rollouts(batch, "train", tracing)
        if tracing is not None:
            metrics[TRACE_SECONDS] = tracing.watch.seconds
        self.report_progress("training", step=self.global_steps)

    def _save_checkpoint(self) -> None:
        self.report_progress("saving", step=self.global_steps)
        super()._save_checkpoint()  # type: ignore[misc]
        self._saved_step = self.global_steps
        if self.config.actor_rollout_ref.actor.get("checkpoint", {}).get("async_save", False):
            return  # still being written
        folder = locate_step(self.config.trainer.default_local_dir, self.global_steps)
        self.spool.write(describe_checkpoint(folder, step=self.global_steps))

    def on_step_end(self) -> None:
        if self._is_asked_to_end():
            self._end_with_this_step()
        super().on_step_end()  # type: ignore[misc]

    def _is_asked_to_end(self) -> bool:
        return is_stop_requested() and self.global_steps < self.total_training_steps

    def _end_with_this_step(self) -> None:
        """Save this step and let it be the last one.

        verl has no stop flag. With the total lowered to this step its loop ends by itself, after this step's
        metrics are logged.
        """
        if self._saved_step != self.global_steps:
            self._save_checkpoint()
        self.is_stopping = True
        self._planned_steps = self.total_training_steps
        self.total_training_steps = self.global_steps

    def _leave_if_asked(self) -> None:
        if is_stop_requested():
            self.is_stopping = True
            raise StoppedByRequest


def _list_lives(responses: StepResponses) -> list[ResponseLife]:
    """Return the timing of each response that was timed."""
    parts = responses.parts or [()] * len(responses.groups)
    return [
        ResponseLife(group, *span, int(tokens.numel()), own)
        for group, span, tokens, own in zip(
            responses.groups, responses.spans, responses.tokens, parts, strict=False
        )
        if span is not None
    ]
