"""GRPO on the platform's engine against TRL's GRPOTrainer: same model, prompts, batches and sampled tokens.

Ours is what a job of the recipe `grpo` runs, composed as the API composes it, without the API around it.
Each side runs in each of its ways to make the same updates, and the faster ones are compared: ours with old
log-probs of the trainer or of the sampler (on a CPU both compute in single precision with the same weights),
TRL's with each sampler that works in one process, and of both also two ranks that share the cores.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trellis_cli.errors import Problem
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import NICENESS_VARIABLE
from trellis_recipes.platform_defaults import environment

from trellis_tools.bench.engine_job import QUIET, SEED, EngineJob, Material, adapter_params
from trellis_tools.bench.grpo_shapes import Shape
from trellis_tools.bench.grpo_steps import STEP, Split, split_ours, split_trl
from trellis_tools.bench.measured_command import run_measured
from trellis_tools.bench.peak_memory import PeakMemory, in_gib
from trellis_tools.bench.result import Result

RECIPE = "grpo"
ENGINE_MODULE = "trellis_train.engines.ppo"


@dataclass(frozen=True)
class Way:
    """How a side runs: whose log-probs are the old ones of ours, or what TRL samples with, and its ranks."""

    source: str
    ranks: int = 1

    @property
    def name(self) -> str:
        """Where its files lie, and what its figures are called."""
        return self.source if self.ranks == 1 else f"{self.source}_{self.ranks}_ranks"


#: The first is what a job does unless told otherwise.
OURS = (Way("trainer"), Way("sampler"), Way("sampler", ranks=2))
THEIRS = (Way("transformers"), Way("vllm"), Way("transformers", ranks=2))
#: Ray lets other processes of the machine go first, and TRL's would not.
SAME_PRIORITY = {NICENESS_VARIABLE: "0"}
#: The model's own, in which ours samples too.
SAMPLER_DTYPE = "float32"
WAIT_POLICY = "OMP_WAIT_POLICY"
LENGTH_KEY = "response_length/mean"


def measure_grpo(shapes: list[Shape], rounds: int) -> Iterator[Result]:
    """Yield one result per shape as it is ready; each way runs once a round, and its fastest run counts."""
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="trellis-grpo-") as folder:
            yield measure_shape(shape, make_starter_material(shape, Path(folder)), Path(folder), rounds)


def measure_shape(
    shape: Shape,
    material: Material,
    folder: Path,
    rounds: int,
    ways: tuple[Sequence[Way], Sequence[Way]] = (OURS, THEIRS),
) -> Result:
    """Run the ways of both sides in turns: a machine's pace changes while they run."""
    runs: dict[str, Run] = {}
    for turn in range(rounds):
        for number in range(max(map(len, ways))):
            for side, run, each in (("ours", run_ours, ways[0]), ("trl", run_trl, ways[1])):
                if number < len(each):
                    way = each[number]
                    place = folder / f"{side}-{way.name}-{turn}"
                    place.mkdir(parents=True)
                    _keep_faster(runs, f"{side}_{way.name}", run(shape, material, place, way))
    ours, theirs = (_fastest(runs, side) for side in ("ours", "trl"))
    return Result(
        f"grpo_against_trl.{shape.name}",
        shape.tokens / runs[ours].split[STEP],
        shape.tokens / runs[theirs].split[STEP],
        "tokens/s",
        bound=shape.bound,
        is_more_better=True,
        details={
            "ours_runs_with": ours.removeprefix("ours_"),
            "trl_runs_with": theirs.removeprefix("trl_"),
            "step_s": {name: _round(run.split) for name, run in runs.items()},
            "peak_gib": in_gib({name: run.peak_bytes for name, run in runs.items()}),
        },
    )


@dataclass(frozen=True)
class Run:
    """Seconds of a step by part, and the memory that the run took at most."""

    split: Split
    peak_bytes: int


def _keep_faster(runs: dict[str, Run], name: str, run: Run) -> None:
    runs[name] = min(runs.get(name, run), run, key=lambda each: each.split[STEP])


def _fastest(runs: Mapping[str, Run], side: str) -> str:
    return min(
        (name for name in runs if name.startswith(f"{side}_")), key=lambda name: runs[name].split[STEP]
    )


def make_starter_material(shape: Shape, folder: Path) -> Material:
    """Create a starter model of the shape's size and the prompts to train it on."""
    _run(
        *("-m", "trellis_train.starter", "--seed", str(SEED), "--size", str(shape.model)),
        *("--model", str(folder / "model"), "--data", str(folder / "data")),
        log=folder / "starter.log",
    )
    return Material(folder / "model", folder / "data" / "rl_train.jsonl")


def make_job(shape: Shape, material: Material, folder: Path, way: Way) -> EngineJob:
    """Describe the job that trains a shape."""
    return EngineJob(
        folder=folder,
        material=material,
        recipe=RECIPE,
        preset=shape.preset,
        params=_params(shape, way),
        # A turn that ends does not end the response.
        overrides={"actor_rollout_ref.rollout.ignore_eos": True},
        ranks=way.ranks,
    )


def run_ours(
    shape: Shape, material: Material, folder: Path, way: Way, env: Mapping[str, str] | None = None
) -> Run:
    """Run a job's engine with the platform's hooks; its events go to a spool that nobody sends."""
    job = make_job(shape, material, folder, way)
    with PeakMemory() as memory:
        # Bare of a cluster's address: it starts one of its own.
        metrics = job.run(ENGINE_MODULE, {**QUIET, **SAME_PRIORITY, **(env or {})})
    lengths = {event["values"][LENGTH_KEY] for event in metrics}
    if lengths != {float(shape.response_tokens)}:
        raise Problem(f"not all responses have {shape.response_tokens} tokens: {sorted(lengths)}")
    return Run(split_ours(metrics, warm_up=shape.warm_up), memory.peak_bytes)


def _params(shape: Shape, way: Way) -> dict[str, object]:
    return {
        "total_steps": shape.steps,
        "batch_size": shape.prompts,
        "group_size": shape.group_size,
        "mini_batch_size": shape.mini_batch // shape.group_size,
        "micro_batch_size": shape.micro_batch(way.ranks),
        "max_prompt_length": shape.prompt_tokens,
        "max_response_length": shape.response_tokens,
        "learning_rate": shape.learning_rate,
        "old_log_probs": way.source,
        "validate_before": False,
        "validate_every": 0,
        "validation_rows": 0,
        "save_every": 0,
        **adapter_params(shape.lora_rank),
    }


def run_trl(shape: Shape, material: Material, folder: Path, way: Way) -> Run:
    """Run TRL's trainer in processes of its own."""
    settings = {
        "model_path": str(material.model),
        "data_path": str(material.rows),
        "out_dir": str(folder / "out"),
        "sampler": way.source,
        "sampler_dtype": SAMPLER_DTYPE,
        "prompts": shape.prompts,
        "group_size": shape.group_size,
        "response_tokens": shape.response_tokens,
        "prompt_tokens": shape.prompt_tokens,
        "mini_batch": shape.mini_batch,
        "micro_batch": shape.micro_batch(way.ranks),
        "learning_rate": shape.learning_rate,
        "lora_rank": shape.lora_rank,
        "steps": shape.steps,
        "seed": SEED,
    }
    file = folder / "settings.json"
    file.write_text(json.dumps(settings))
    module = ("-m", "trellis_train.comparison.trl_grpo", str(file))
    torchrun = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={way.ranks}")
    command = module if way.ranks == 1 else (*torchrun, *module)
    with PeakMemory() as memory:
        answer = _run(*command, log=folder / "log", env=_trl_environment(way))
    times = json.loads(answer.splitlines()[-1])
    if set(times["tokens"]) != {shape.tokens}:
        raise Problem(f"TRL sampled {times['tokens']} tokens per step instead of {shape.tokens}")
    return Run(split_trl(times, warm_up=shape.warm_up), memory.peak_bytes)


def _trl_environment(way: Way) -> dict[str, str]:
    """Return the environment with our plugin for vLLM's CPU build and the threads that suit TRL best.

    A process that has the machine to itself is a sixth faster while its idle threads spin, as OpenMP's do by
    default; with vLLM in it there are more threads than cores, and spinning they starve each other.
    """
    ours = environment(Engine.VERL_PPO, "cpu") | environment(Engine.TRL, "cpu")
    return ours if way.source == "vllm" else {name: ours[name] for name in ours if name != WAIT_POLICY}


def _run(*arguments: str, log: Path, env: Mapping[str, str] | None = None) -> str:
    return run_measured(*arguments, log=log, env={**QUIET, **(env or {})})


def _round(split: Split) -> Split:
    return {name: round(seconds, 3) for name, seconds in split.items()}
