"""SFT on the platform's engine against TRL's SFTTrainer: same model, rows, batches and length limit.

Rows differ in length. Ours trains them without padding, TRL pads a batch to its longest row: what is compared
is tokens of rows per second, padding not counted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_cli.errors import Problem
from trellis_contracts.recipe import Engine
from trellis_recipes.platform_defaults import environment

from trellis_tools.bench.engine_job import QUIET, SEED, EngineJob, Material, adapter_params, seconds_of
from trellis_tools.bench.measured_command import run_measured
from trellis_tools.bench.peak_memory import PeakMemory, in_gib
from trellis_tools.bench.result import Result

RECIPE, PRESET = "sft", "cpu-small"
ENGINE_MODULE = "trellis_train.engines.sft"
TOKENS_KEY = "train/global_tokens"
#: TRL's passes of a step: the whole batch at once, or in parts that pad less.
MICRO_BATCHES = (8, 2)


@dataclass(frozen=True)
class SftShape:
    """One comparison."""

    name: str
    learning_rate: float
    lora_rank: int = 0
    batch: int = 8
    max_length: int = 512
    steps: int = 6
    #: Steps that warm caches up on both sides.
    warm_up: int = 1
    bound: float | None = 1.0


def measure_sft(shape: SftShape, material: Material, folder: Path) -> Result:
    """Measure the tokens per second of both sides after the warm-up; TRL's faster way counts."""
    metrics, memory = run_ours(shape, material, folder / "ours")
    ours = speed_ours(shape, metrics)
    theirs: dict[str, float] = {}
    peaks = {"ours": memory}
    for micro_batch in MICRO_BATCHES:
        name = f"trl_passes_of_{micro_batch}"
        place = folder / name
        times, peaks[name] = run_trl(shape, material, place, micro_batch)
        # The first entry is the start of the first step.
        theirs[name] = speed_of(times["ends_s"][1:], times["tokens"], warm_up=shape.warm_up)
    fastest = max(theirs, key=lambda name: theirs[name])
    return Result(
        f"sft_against_trl.{shape.name}",
        ours,
        theirs[fastest],
        "tokens/s",
        bound=shape.bound,
        is_more_better=True,
        details={
            "trl_runs_with": fastest,
            "trl_tokens_s": {name: round(each, 1) for name, each in theirs.items()},
            "peak_gib": in_gib(peaks),
        },
    )


def speed_ours(shape: SftShape, metrics: Sequence[Mapping[str, Any]]) -> float:
    """Compute the tokens per second of our run after the warm-up."""
    return speed_of(
        [seconds_of(event) for event in metrics],
        [event["values"][TOKENS_KEY] for event in metrics],
        warm_up=shape.warm_up,
    )


def run_ours(
    shape: SftShape, material: Material, folder: Path, env: Mapping[str, str] | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Run the recipe; return its metrics events and its peak memory in bytes."""
    job = EngineJob(
        folder=folder,
        material=material,
        recipe=RECIPE,
        preset=PRESET,
        params={
            "total_steps": shape.steps,
            "batch_size": shape.batch,
            "max_length": shape.max_length,
            "learning_rate": shape.learning_rate,
            "validate_every": 0,
            "validation_rows": 0,
            "save_every": 0,
            **adapter_params(shape.lora_rank),
        },
    )
    with PeakMemory() as memory:
        metrics = job.run(ENGINE_MODULE, {**QUIET, **(env or {})})
    return [event for event in metrics if TOKENS_KEY in event["values"]], memory.peak_bytes


def run_trl(
    shape: SftShape, material: Material, folder: Path, micro_batch: int
) -> tuple[dict[str, Any], int]:
    """Run TRL; return its times and its peak memory in bytes."""
    folder.mkdir(parents=True)
    file = folder / "settings.json"
    file.write_text(
        json.dumps(
            {
                "model_path": str(material.model),
                "data_path": str(material.rows),
                "out_dir": str(folder / "out"),
                "batch": shape.batch,
                "micro_batch": micro_batch,
                "max_length": shape.max_length,
                "learning_rate": shape.learning_rate,
                "lora_rank": shape.lora_rank,
                "steps": shape.steps,
                "seed": SEED,
            }
        )
    )
    with PeakMemory() as memory:
        answer = run_measured(
            "-m", "trellis_train.comparison.trl_sft", str(file), log=folder / "log", env=_trl_environment()
        )
    times: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return times, memory.peak_bytes


def speed_of(ends_s: Sequence[float], tokens: Sequence[float], *, warm_up: int) -> float:
    """Compute the tokens per second of the steps after the warm-up; ``ends_s`` are the steps' end times."""
    if len(ends_s) < warm_up + 2:
        raise Problem(f"only {len(ends_s)} steps were timed")
    first = max(warm_up, 1) - 1  # the end of this step starts the clock
    return sum(tokens[first + 1 :]) / (ends_s[-1] - ends_s[first])


def _trl_environment() -> Mapping[str, str]:
    """Return the platform's threads for TRL, with idle ones left spinning: TRL has the machine to itself."""
    ours = environment(Engine.TRL, "cpu")
    return {name: ours[name] for name in ours if name != "OMP_WAIT_POLICY"}
