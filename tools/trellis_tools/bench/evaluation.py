"""An evaluation against lm-evaluation-harness: same vLLM, model, prompts and limit, from start to scores.

Ours is the engine of a job, without the API around it. The harness gets the very prompts that ours has kept
in its samples. It runs with vLLM's engine in processes of its own, as it does by default, and in one process,
as ours does; the faster is what we are compared with.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trellis_cli.errors import Problem
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_contracts.attempt import SPEC_FILE
from trellis_contracts.evaluation import (
    RESULT_FILE,
    SAMPLES_FOLDER,
    BenchmarkFiles,
    BenchmarkTask,
    Decoding,
    EngineSettings,
    EvaluationResult,
    EvaluationTask,
    Gsm8kOrder,
    MmluOrder,
)
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import NICENESS_VARIABLE, JobSpec, ModelSource
from trellis_evaluation.samples.store import open_store
from trellis_recipes.platform_defaults import environment

from trellis_tools.bench.measured_command import PATIENCE_S, run_measured
from trellis_tools.bench.peak_memory import PeakMemory, in_gib
from trellis_tools.bench.result import Result

SEED = 0
CONTEXT = 4096
MAX_TOKENS = 128
#: Of the starter model, which answers hundreds of problems in seconds.
PROBLEMS = {"gsm8k": 128, "mmlu": 512}
#: How many processes vLLM takes, by the name of the harness's mode.
MODES = {"processes": "1", "one_process": "0"}
#: How the harness measures what `order_benchmarks` orders.
_HARNESS_TASKS: dict[str, dict[str, Any]] = {
    "gsm8k": {"kind": "generate", "stop": ["Question:"], "max_tokens": MAX_TOKENS},
    "mmlu": {"kind": "choices"},
}
_FOLDER_VARIABLE = "TRELLIS_BENCHMARK_DIR"


def measure_evaluation() -> Iterator[Result]:
    """Measure the seconds from start to end of the process, on the starter model."""
    with tempfile.TemporaryDirectory(prefix="trellis-eval-") as name:
        folder = Path(name)
        starter = ("--model", str(folder / "model"), "--seed", str(SEED))
        run_measured("-m", "trellis_train.starter", *starter, log=folder / "starter.log")
        yield compare_evaluation("eval_against_lm_eval", folder / "model", folder, PROBLEMS, bound=1.0)


def compare_evaluation(
    name: str, model: Path, folder: Path, problems: Mapping[str, int], *, bound: float
) -> Result:
    """Compare the seconds of both sides on a model folder; the harness's faster mode counts."""
    peaks = {}
    with PeakMemory() as memory:
        ours = run_ours(model, folder, order_benchmarks(find_data(), problems))
    peaks["ours"] = memory.peak_bytes
    settings = write_settings(model, folder)
    found = EvaluationResult.model_validate_json((folder / "evaluation" / RESULT_FILE).read_bytes())
    scores = {each.label: round(each.scores[0].value, 4) for each in found.benchmarks}
    theirs: dict[str, float] = {}
    told: dict[str, Any] = {}
    for mode, flag in MODES.items():
        with PeakMemory() as memory:
            theirs[mode], told[mode] = run_harness(folder, settings, mode, flag)
        peaks[mode] = memory.peak_bytes
    for mode, each in told.items():
        if each["prompts"] != problems:
            raise Problem(f"lm-evaluation-harness ({mode}) measured {each['prompts']}, not {problems}")
    fastest = min(theirs, key=lambda mode: theirs[mode])
    details = {
        "harness_s": {mode: round(seconds, 2) for mode, seconds in theirs.items()},
        "benchmarks_s": {each.label: each.seconds for each in found.benchmarks},
        "scores": {"ours": scores, "harness": told[fastest]["scores"]},
        "problems": dict(problems),
        "peak_gib": in_gib(peaks),
    }
    return Result(name, ours, theirs[fastest], "s", bound=bound, details=details)


def find_data() -> Path:
    """Return the folder with the published test sets; raise ``Problem`` if a file is missing."""
    folder = Path(os.environ.get(_FOLDER_VARIABLE, REPOSITORY_ROOT.parent / "shared" / "data"))
    for file in ("gsm8k/test.jsonl", "gsm8k/train.jsonl", "mmlu/stem_test.jsonl"):
        if not (folder / file).is_file():
            raise Problem(f"{folder / file} is not there", hint=f"{_FOLDER_VARIABLE} names the folder")
    return folder


def order_benchmarks(data: Path, problems: Mapping[str, int | None]) -> list[BenchmarkTask]:
    """Order GSM8K with its examples and MMLU without (so that prompts fit the starter's context of bytes).

    ``problems``: how many of each, None for the whole set.
    """

    def files(**parts: str) -> BenchmarkFiles:
        return BenchmarkFiles(
            paths={part: [str(data / name)] for part, name in parts.items()}, sha256="0" * 64
        )

    return [
        BenchmarkTask(
            label="gsm8k",
            order=Gsm8kOrder(
                limit=problems["gsm8k"], chat="never", shots=5, decoding=Decoding(max_tokens=MAX_TOKENS)
            ),
            files=files(test="gsm8k/test.jsonl", train="gsm8k/train.jsonl"),
        ),
        BenchmarkTask(
            label="mmlu",
            order=MmluOrder(limit=problems["mmlu"], chat="never", shots=0),
            files=files(test="mmlu/stem_test.jsonl"),
        ),
    ]


def run_ours(
    model: Path, folder: Path, tasks: list[BenchmarkTask], *, timeout_s: float = PATIENCE_S
) -> float:
    """Run the engine of a job, whose events nobody sends, and return its seconds."""
    attempt = folder / "job" / "attempt-1"
    attempt.mkdir(parents=True)
    spec = JobSpec(
        job_id="job_benchmark",
        attempt=1,
        name="benchmark",
        recipe="",
        engine=Engine.EVALUATE,
        platform="cpu",
        gpus=0,
        seed=SEED,
        params={},
        engine_overrides=[],
        env=_environment(),
        model=ModelSource(model_id="model", path=str(model)),
        attempt_dir=str(attempt),
        checkpoint_dir=str(folder / "checkpoints"),
        evaluation=EvaluationTask(
            evaluation_id="ev_benchmark",
            output_dir=str(folder / "evaluation"),
            benchmarks=tasks,
            engine=EngineSettings(max_model_len=CONTEXT),
            seed=SEED,
        ),
        ingest_url="http://127.0.0.1:9",
    )
    file = attempt / SPEC_FILE
    file.write_text(spec.model_dump_json())
    started = time.perf_counter()
    run_measured("-m", "trellis_train.engines.evaluate", str(file), log=attempt / "log", timeout_s=timeout_s)
    return time.perf_counter() - started


def write_settings(model: Path, folder: Path, *, samples: Path | None = None) -> Path:
    """Write the harness's tasks, with the prompts of the samples that our evaluation left in ``folder``.

    With ``samples``, the harness writes there what it finds for each prompt.
    """
    tasks = []
    for label, more in _HARNESS_TASKS.items():
        if not _samples_file(folder, label).exists():
            continue
        rows = folder / f"{label}.jsonl"
        with open_store(_samples_file(folder, label)) as store:
            lines = [json.dumps({"prompt": each.prompt, "gold": each.gold}) for each in store.samples()]
        rows.write_text("\n".join(lines))
        tasks.append({"label": label, "rows_path": str(rows), **more})
    file = folder / "settings.json"
    settings = {"model_path": str(model), "max_model_len": CONTEXT, "tasks": tasks}
    file.write_text(json.dumps({**settings, "samples_path": str(samples) if samples else None}))
    return file


def _samples_file(folder: Path, label: str) -> Path:
    return folder / "evaluation" / SAMPLES_FOLDER / f"{label}.sqlite"


def run_harness(
    folder: Path, settings: Path, mode: str, flag: str, *, timeout_s: float = PATIENCE_S
) -> tuple[float, dict[str, Any]]:
    """Run the harness; return its seconds and its results."""
    env = {
        **_environment(),
        "VLLM_ENABLE_V1_MULTIPROCESSING": flag,
        "VLLM_CPU_KVCACHE_SPACE": "4",
        # As ours has it: nothing is looked up anywhere.
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        # Rows are read anew by each mode.
        "HF_DATASETS_CACHE": str(folder / f"datasets-{mode}"),
    }
    started = time.perf_counter()
    answer = run_measured(
        *("-m", "trellis_train.comparison.lm_eval_vllm", str(settings)),
        log=folder / f"{mode}.log",
        env=env,
        timeout_s=timeout_s,
    )
    seconds = time.perf_counter() - started
    return seconds, json.loads(answer.strip().splitlines()[-1])


def _environment() -> dict[str, str]:
    """Return the environment of both sides: the platform's, at normal process priority."""
    return {**environment(Engine.EVALUATE, "cpu"), NICENESS_VARIABLE: "0"}
