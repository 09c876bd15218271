"""Short runs of the engines, composed as jobs are, on the starter model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import SPEC_FILE
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import JobSpec

from trellis_cli.errors import Problem
from trellis_cli.gpu_check.check_results import Ground, Row
from trellis_cli.gpu_check.judging import Told, find_problem
from trellis_cli.gpu_check.process import run_limited
from trellis_cli.local_job import LocalJob, LocalRows, write_spec
from trellis_cli.local_run import LOG_FILE, command_alone, environment_alone

STEPS = 2
#: Ray's start, vLLM's kernels and graphs, and a machine that does it for the first time.
LIMIT_S = 900.0
SEED = 1


@dataclass(frozen=True)
class TrainingRun:
    """A recipe with the settings of a small run; presets are those of the machine that it runs on."""

    name: str
    recipe: str
    #: Of the starter's data.
    rows: str
    format: DataFormat
    params: Mapping[str, Any]
    #: The engine's names of what must be finite.
    losses: tuple[str, ...]
    gradient: str
    gpus: int = 1
    package: str | None = None
    limit_s: float = LIMIT_S

    def run(self, ground: Ground) -> Row:
        """Run it in processes of its own; what it wrote stays where it fails."""
        try:
            spec = self.compose(ground)
        except Problem as problem:
            return Row(self.name, "failing", f"invalid settings: {problem.message}")
        attempt = Path(spec.attempt_dir)
        ended = run_limited(
            command_alone(attempt / SPEC_FILE), limit_s=self.limit_s, environment=environment_alone()
        )
        told = Told.by(attempt)
        log = attempt / LOG_FILE
        log.write_text("\n".join([*told.log, ended.output, ended.errors]))
        problem_found = find_problem(
            ended, told, steps=STEPS, losses=self.losses, gradient=self.gradient, limit_s=self.limit_s
        )
        if problem_found is not None:
            return Row(self.name, "failing", f"{problem_found}; see {log}", ended.seconds)
        return Row(self.name, "ok", self._describe(spec, told), ended.seconds)

    def compose(self, ground: Ground) -> JobSpec:
        """Write the attempt's spec; ``Problem`` where the recipe refuses the settings."""
        job = LocalJob(
            folder=ground.folder / self.name.replace(" ", "-").replace(",", ""),
            recipe=self.recipe,
            model=str(ground.model),
            train=LocalRows(ground.data / f"{self.rows}.jsonl", self.format),
            params={**self.params, "total_steps": STEPS, "save_every": 0},
            seed=SEED,
            platform=ground.platform,
            gpus=self.gpus,
        )
        return write_spec(job)

    def _describe(self, spec: JobSpec, told: Told) -> str:
        """Describe what ran, with the values of the first loss."""
        name = self.losses[0]
        values = " → ".join(f"{told.metrics[step][name]:.4g}" for step in range(1, STEPS + 1))
        return f"{STEPS} steps of {spec.recipe} on {spec.engine}, {name} {values}, checkpoint written"


FULL: Mapping[str, Any] = {"lora_rank": 0}
ADAPTER: Mapping[str, Any] = {"lora_rank": 8, "lora_alpha": 16}
_MEASURED: Mapping[str, Any] = {"validation_rows": 16, "validate_every": STEPS}


#: Of short runs on the starter model.
SFT_PARAMS: Mapping[str, Any] = {**_MEASURED, "batch_size": 16, "max_length": 256, "learning_rate": 1e-3}
#: Two updates a step, of answers that a model which was taught nothing gets right now and then.
GRPO_PARAMS: Mapping[str, Any] = {
    **_MEASURED,
    "batch_size": 16,
    "mini_batch_size": 8,
    "group_size": 8,
    "max_prompt_length": 128,
    "max_response_length": 32,
    "max_tokens_per_gpu": 2048,
    # What is left is for the trainer, on GPUs of 16 GB too; more would only be set aside.
    "sampler_memory": 0.2,
    "reward": "contains",
    "learning_rate": 1e-4,
}


def _sft(name: str, weights: Mapping[str, Any]) -> TrainingRun:
    return TrainingRun(
        name=name,
        recipe="sft",
        rows="sft",
        format=DataFormat.PROMPT_ANSWER,
        params={**SFT_PARAMS, **weights},
        losses=("train/loss",),
        gradient="train/grad_norm",
    )


def _grpo(name: str, weights: Mapping[str, Any], *, gpus: int = 1) -> TrainingRun:
    return TrainingRun(
        name=name,
        recipe="grpo",
        rows="rl_train",
        format=DataFormat.PROMPT_ANSWER,
        params={**GRPO_PARAMS, **weights},
        losses=("actor/pg_loss",),
        gradient="actor/grad_norm",
        gpus=gpus,
    )


def _dpo(name: str, weights: Mapping[str, Any], *, package: str | None = None) -> TrainingRun:
    sizes = {"batch_size": 16, "micro_batch_size": 8, "max_length": 256, "learning_rate": 1e-4}
    return TrainingRun(
        name=name,
        recipe="dpo",
        rows="preference_train",
        format=DataFormat.PREFERENCE,
        params={**_MEASURED, **weights, **sizes},
        losses=("loss",),
        gradient="grad_norm",
        package=package,
    )


RUNS = (
    _sft("sft, full", FULL),
    _sft("sft, LoRA", ADAPTER),
    _dpo("dpo, full", FULL),
    _dpo("dpo, QLoRA", {**ADAPTER, "quantize_base": True}, package="bitsandbytes"),
    _grpo("grpo, full", FULL),
    _grpo("grpo, LoRA", ADAPTER),
    _grpo("grpo, two GPUs", FULL, gpus=2),
)
