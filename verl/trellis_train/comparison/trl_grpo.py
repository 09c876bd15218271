"""GRPO with TRL's own trainer, timed: ``python -m trellis_train.comparison.trl_grpo <settings.json>``.

Every step samples one batch of prompts and makes the same updates as the platform's
GRPO with the same settings. Under torchrun the ranks share the work of each step. The first
rank prints one JSON object: :class:`TrlTimes`.
"""

import os
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from trellis_data.json_objects import read_objects

from trellis_train.compat import vllm_name
from trellis_train.engines.ranks import RANK_VARIABLE
from trellis_train.platform.activation import is_cpu_platform

#: Where TRL samples: in the model that it trains, or in a vLLM engine in the same process.
Sampler = Literal["transformers", "vllm"]


PARTS = ("generation", "log_probs", "update", "sync")


class TrlSettings(BaseModel):
    """What is trained, and how much of it."""

    model_path: str
    #: JSON Lines with ``prompt`` and ``answer``.
    data_path: str
    out_dir: str
    sampler: Sampler
    #: What a vLLM engine computes in.
    sampler_dtype: str
    #: Prompts of a step, responses to each, and tokens of every response.
    prompts: int
    group_size: int
    response_tokens: int
    prompt_tokens: int
    #: Responses of an update, and of a pass through the model of each rank.
    mini_batch: int
    micro_batch: int
    learning_rate: float
    #: Of an adapter on all linear layers; 0 trains all weights.
    lora_rank: int = 0
    steps: int
    seed: int


class TrlTimes(BaseModel):
    """Seconds of every step, from its first request to its last update."""

    #: When each step ended; the first entry is the start of the first step.
    ends_s: list[float]
    #: Seconds of each step by part (``PARTS``); what lies in none is the rest.
    parts_s: dict[str, list[float]]
    #: Tokens that each step sampled.
    tokens: list[int]


def main(arguments: list[str]) -> int:
    """Run the comparison of the settings file; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.comparison.trl_grpo <settings.json>", file=sys.stderr)
        return 2
    settings = TrlSettings.model_validate_json(Path(arguments[0]).read_text())
    answer = sys.stdout
    sys.stdout = sys.stderr  # the answer stands alone there; libraries print
    times = train(settings)
    if int(os.environ.get(RANK_VARIABLE, "0")) == 0:
        print(times.model_dump_json(), file=answer, flush=True)
    return 0


def train(settings: TrlSettings) -> TrlTimes:
    """Train ``settings.steps`` steps and time each."""
    if is_cpu_platform():
        vllm_name.install()  # TRL asks for the version of `vllm`, too
    from datasets import Dataset
    from trl import GRPOTrainer

    rows = [
        {"prompt": [{"role": "user", "content": row["prompt"]}], "answer": row["answer"]}
        for row in read_objects(Path(settings.data_path))
    ]
    ranks = _count_ranks()
    if settings.sampler == "vllm":
        _sample_in(settings.sampler_dtype)
    clock = StepClock(ranks)
    trainer = GRPOTrainer(
        model=settings.model_path,
        reward_funcs=reward_exact,
        args=_config(settings, ranks),
        train_dataset=Dataset.from_list(rows),
        peft_config=make_adapter(settings.lora_rank),
    )
    clock.watch(trainer, updates_per_step=settings.prompts * settings.group_size // settings.mini_batch)
    trainer.train()
    return clock.read()


def make_adapter(rank: int) -> Any:
    """Create LoRA on all linear layers, as ours trains it; None for rank 0."""
    if not rank:
        return None
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


def reward_exact(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """Return 1 for the answer and nothing else: the platform's reward ``exact``."""
    return [
        float(completion[0]["content"].strip() == truth)
        for completion, truth in zip(completions, answer, strict=True)
    ]


def _sample_in(dtype: str) -> None:
    """Give TRL's vLLM engine ``dtype``, for which TRL has no setting.

    Left alone, vLLM takes bfloat16 for a model in single precision: another policy than the one that trains.
    """
    from trl.generation import vllm_generation

    vllm_generation.LLM = partial(vllm_generation.LLM, dtype=dtype)


def _count_ranks() -> int:
    """Count the processes that torchrun has started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _config(settings: TrlSettings, ranks: int) -> Any:
    from trl import GRPOConfig

    responses = settings.prompts * settings.group_size
    in_a_pass = settings.micro_batch * ranks
    samples_with_vllm = settings.sampler == "vllm"
    longest = settings.prompt_tokens + settings.response_tokens
    # Every response has the same length on both sides: the end of a turn does not end it.
    fixed_length = {"ignore_eos": True} if samples_with_vllm else {"min_new_tokens": settings.response_tokens}
    return GRPOConfig(
        output_dir=settings.out_dir,
        per_device_train_batch_size=settings.micro_batch,
        gradient_accumulation_steps=settings.mini_batch // in_a_pass,
        steps_per_generation=responses // in_a_pass,
        num_generations=settings.group_size,
        max_completion_length=settings.response_tokens,
        max_steps=settings.steps * responses // settings.mini_batch,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant",
        beta=0.0,
        loss_type="grpo",
        temperature=1.0,
        use_vllm=samples_with_vllm,
        vllm_mode="colocate",
        vllm_max_model_length=longest,
        generation_kwargs=fixed_length,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        seed=settings.seed,
        save_strategy="no",
        report_to="none",
        logging_steps=responses // settings.mini_batch,
        disable_tqdm=True,
    )


class StepClock:
    """Times steps of the trainer and their parts by wrapping what the trainer calls."""

    def __init__(self, ranks: int = 1) -> None:
        #: Each of which samples as many tokens as this one.
        self._ranks = ranks
        self._ends = [0.0]
        self._parts: dict[str, list[float]] = {part: [] for part in PARTS}
        self._running: dict[str, float] = defaultdict(float)
        self._tokens: list[int] = []
        self._counted = 0
        self._is_preparing = False

    def watch(self, trainer: Any, *, updates_per_step: int) -> None:
        """Install the clock; a step is ``updates_per_step`` updates of the optimizer."""
        from transformers import TrainerCallback

        clock = self

        class Steps(TrainerCallback):
            def on_train_begin(self, *_: Any, **__: Any) -> None:
                clock._ends = [time.monotonic()]

            def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
                clock._running["update"] -= time.monotonic()

            def on_optimizer_step(self, *_: Any, **__: Any) -> None:
                clock._running["update"] += time.monotonic()

            def on_step_end(self, _args: Any, state: Any, _control: Any, **__: Any) -> None:
                if state.global_step % updates_per_step == 0:
                    clock._end_step()

        trainer.add_callback(Steps())
        self._wrap(trainer, "training_step", "update")
        self._wrap(trainer, "_generate_and_score_completions", "prepared")
        self._wrap(trainer, "_generate_single_turn", "generation")
        self._wrap(trainer, "_get_per_token_logps_and_entropies", "log_probs")
        if trainer.use_vllm:
            self._wrap(trainer.vllm_generation, "sync_weights", "sync")

    def read(self) -> TrlTimes:
        """Return the measured times."""
        return TrlTimes(ends_s=self._ends, parts_s=self._parts, tokens=self._tokens)

    def _wrap(self, owner: Any, name: str, part: str) -> None:
        original = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            if part == "log_probs" and not self._is_preparing:
                return original(*args, **kwargs)  # the forward pass of an update
            self._is_preparing |= part == "prepared"
            started = time.monotonic()
            try:
                result = original(*args, **kwargs)
            finally:
                self._running[part] += time.monotonic() - started
                self._is_preparing &= part != "prepared"
            if part == "generation":
                self._counted += self._ranks * sum(len(ids) for ids in result[0])
            return result

        setattr(owner, name, timed)

    def _end_step(self) -> None:
        self._ends.append(time.monotonic())
        self._tokens.append(self._counted)
        self._counted = 0
        took = {part: self._running.pop(part, 0.0) for part in (*PARTS, "prepared")}
        # Parts lie inside each other: a training step prepares its batch, and sampling syncs the weights.
        took["update"] -= took["prepared"]
        took["generation"] -= took["sync"]
        for part in PARTS:
            self._parts[part].append(took[part])


if __name__ == "__main__":
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    sys.exit(main(sys.argv[1:]))
