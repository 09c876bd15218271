"""GRPO on the platform's engine against TRL's GRPOTrainer: same model, prompts, batches and sampled tokens.

Ours is what a job of the recipe `grpo` runs, composed as the API composes it, without the API around it.
Each side runs in each of its ways to make the same updates, and the faster ones are compared: ours with old
log-probs of the trainer or of the sampler (on a CPU both compute in single precision with the same weights),
TRL's with each sampler that works in one process, and of both also two ranks that share the cores.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.attempt import EVENTS_FOLDER, PREPARED_FOLDER, SPEC_FILE, TRAIN_FILE
from trellis_contracts.recipe import DataFormat, Engine
from trellis_contracts.spec import DataSource, JobSpec, ModelSource
from trellis_data.json_objects import read_objects
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.memory.architecture import find_architecture
from trellis_recipes.platform_defaults import environment

from trellis_cli.bench.grpo_shapes import Shape
from trellis_cli.bench.grpo_steps import STEP, Split, split_ours, split_trl
from trellis_cli.bench.measured_command import run_measured
from trellis_cli.bench.result import Result
from trellis_cli.errors import Problem

RECIPE, PRESET = "grpo", "cpu-tiny"
LEARNING_RATE = 2e-4
SEED = 1


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
SAME_PRIORITY = {"RAY_worker_niceness": "0"}
#: The model's own, in which ours samples too.
SAMPLER_DTYPE = "float32"
WAIT_POLICY = "OMP_WAIT_POLICY"
LENGTH_KEY = "response_length/mean"
DATA_FILE = "rl_train"


def measure_grpo(shapes: list[Shape], rounds: int) -> Iterator[Result]:
    """One result a shape, when it is there; each way runs once a round, and its fastest run counts."""
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="trellis-grpo-") as folder:
            yield measure_shape(shape, Path(folder), rounds)


def measure_shape(shape: Shape, folder: Path, rounds: int) -> Result:
    """Run the ways of both sides in turns: a machine's pace changes while they run."""
    _make_model_and_data(shape, folder)
    ours: dict[str, Split] = {}
    theirs: dict[str, Split] = {}
    for turn in range(rounds):
        for our_way, their_way in zip(OURS, THEIRS, strict=True):
            _keep_faster(ours, our_way, run_ours(shape, folder, our_way, turn))
            _keep_faster(theirs, their_way, run_trl(shape, folder, their_way, turn))
    best, fastest = _fastest(ours), _fastest(theirs)
    splits = {f"ours_{name}": each for name, each in ours.items()}
    splits |= {f"trl_{name}": each for name, each in theirs.items()}
    return Result(
        f"grpo_against_trl.{shape.name}",
        shape.tokens / ours[best][STEP],
        shape.tokens / theirs[fastest][STEP],
        "tokens/s",
        bound=shape.bound,
        is_more_better=True,
        details={
            "ours_runs_with": best,
            "trl_runs_with": fastest,
            "step_s": {name: _round(split) for name, split in splits.items()},
        },
    )


def _keep_faster(splits: dict[str, Split], way: Way, split: Split) -> None:
    splits[way.name] = min(splits.get(way.name, split), split, key=lambda each: each[STEP])


def _fastest(splits: Mapping[str, Split]) -> str:
    return min(splits, key=lambda name: splits[name][STEP])


def _make_model_and_data(shape: Shape, folder: Path) -> None:
    _run(
        *("-m", "trellis_train.starter", "--seed", str(SEED), "--size", shape.model),
        *("--model", str(folder / "model"), "--data", str(folder / "data")),
        log=folder / "starter.log",
    )
    rows = list(read_objects(folder / "data" / f"{DATA_FILE}.jsonl"))
    pq.write_table(pa.Table.from_pylist(rows), _parquet(folder))


def _parquet(folder: Path) -> Path:
    return folder / "data" / f"{DATA_FILE}.parquet"


def run_ours(shape: Shape, folder: Path, way: Way, turn: int) -> Split:
    """The engine of a job, with the platform's hooks, writing to a spool that nobody sends."""
    attempt = folder / f"job-{way.name}-{turn}" / "attempt-1"
    (attempt / PREPARED_FOLDER).mkdir(parents=True)
    spec = _make_spec(shape, folder, attempt, way)
    spec_file = attempt / SPEC_FILE
    spec_file.write_text(spec.model_dump_json())
    _run("-m", "trellis_train.data", str(spec_file), log=folder / "data.log")
    # Bare of a cluster's address: it starts one of its own.
    _run("-m", "trellis_train.engines.ppo", str(spec_file), log=attempt / "log", env=SAME_PRIORITY)
    metrics = read_metrics(attempt)
    lengths = {event["values"][LENGTH_KEY] for event in metrics}
    if lengths != {float(shape.response_tokens)}:
        raise Problem(f"responses are not all of {shape.response_tokens} tokens: {sorted(lengths)}")
    return split_ours(metrics, warm_up=shape.warm_up)


def _make_spec(shape: Shape, folder: Path, attempt: Path, way: Way) -> JobSpec:
    parquet = _parquet(folder)
    row_count = pq.read_metadata(parquet).num_rows
    composition = _compose(shape, folder, attempt, row_count, way)
    return JobSpec(
        job_id="job_benchmark",
        attempt=1,
        name="benchmark",
        recipe=RECIPE,
        engine=composition.engine,
        platform="cpu",
        gpus=way.ranks,
        seed=SEED,
        params=composition.params,
        engine_overrides=composition.engine_overrides,
        env=composition.env,
        model=ModelSource(model_id="model", path=str(folder / "model")),
        trains_on=get_recipe(RECIPE).trains_on,
        train_data=DataSource(
            dataset_id=DATA_FILE,
            paths=[str(parquet)],
            format=DataFormat.PROMPT_ANSWER,
            sha256="0",
            row_count=row_count,
        ),
        attempt_dir=str(attempt),
        checkpoint_dir=str(folder / "checkpoints"),
        ingest_url="http://127.0.0.1:9",
    )


def _compose(shape: Shape, folder: Path, attempt: Path, rows: int, way: Way) -> Composition:
    composition = compose(
        ComposeRequest(
            recipe=RECIPE,
            preset=PRESET,
            params={
                "total_steps": shape.steps,
                "batch_size": shape.prompts,
                "group_size": shape.group_size,
                "mini_batch_size": shape.mini_batch // shape.group_size,
                "micro_batch_size": shape.micro_batch(way.ranks),
                "max_prompt_length": shape.prompt_tokens,
                "max_response_length": shape.response_tokens,
                "learning_rate": LEARNING_RATE,
                "old_log_probs": way.source,
                "validate_before": False,
                "validate_every": 0,
                "validation_rows": 0,
                "save_every": 0,
            },
            # A turn that ends does not end the response.
            overrides={"actor_rollout_ref.rollout.ignore_eos": True},
            platform="cpu",
            gpus=way.ranks,
            model_path=str(folder / "model"),
            architecture=find_architecture(folder / "model"),
            train_path=str(attempt / PREPARED_FOLDER / TRAIN_FILE),
            checkpoint_dir=str(folder / "checkpoints"),
            seed=SEED,
            row_count=rows,
        )
    )
    if composition.errors:
        raise Problem("; ".join(issue.message for issue in composition.errors))
    return composition


def read_metrics(attempt: Path) -> list[dict[str, Any]]:
    """The metrics events of a run, in the order of its steps."""
    files = sorted((attempt / EVENTS_FOLDER).glob("*.jsonl"))
    events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    return [event for event in events if event["kind"] == "metrics"]


def run_trl(shape: Shape, folder: Path, way: Way, turn: int) -> Split:
    """TRL's trainer in processes of its own."""
    settings = {
        "model_path": str(folder / "model"),
        "data_path": str(folder / "data" / f"{DATA_FILE}.jsonl"),
        "out_dir": str(folder / f"trl-{way.name}-{turn}"),
        "sampler": way.source,
        "sampler_dtype": SAMPLER_DTYPE,
        "prompts": shape.prompts,
        "group_size": shape.group_size,
        "response_tokens": shape.response_tokens,
        "prompt_tokens": shape.prompt_tokens,
        "mini_batch": shape.mini_batch,
        "micro_batch": shape.micro_batch(way.ranks),
        "learning_rate": LEARNING_RATE,
        "steps": shape.steps,
        "seed": SEED,
    }
    file = folder / f"trl-{way.name}-{turn}.json"
    file.write_text(json.dumps(settings))
    module = ("-m", "trellis_train.comparison.trl_grpo", str(file))
    torchrun = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={way.ranks}")
    command = module if way.ranks == 1 else (*torchrun, *module)
    answer = _run(*command, log=file.with_suffix(".log"), env=_trl_environment(way))
    times = json.loads(answer.splitlines()[-1])
    if set(times["tokens"]) != {shape.tokens}:
        raise Problem(f"TRL sampled {times['tokens']} tokens a step, not {shape.tokens}")
    return split_trl(times, warm_up=shape.warm_up)


def _trl_environment(way: Way) -> dict[str, str]:
    """Our plugin for vLLM's CPU build, and threads as they suit TRL best.

    A process that has the machine to itself is a sixth faster while its idle threads spin, as OpenMP's do by
    default; with vLLM in it there are more threads than cores, and spinning they starve each other.
    """
    ours = environment(Engine.VERL_PPO, "cpu") | environment(Engine.TRL, "cpu")
    return ours if way.source == "vllm" else {name: ours[name] for name in ours if name != WAIT_POLICY}


def _run(*arguments: str, log: Path, env: Mapping[str, str] | None = None) -> str:
    return run_measured(*arguments, log=log, env={"TOKENIZERS_PARALLELISM": "false", **(env or {})})


def _round(split: Split) -> Split:
    return {name: round(seconds, 3) for name, seconds in split.items()}
