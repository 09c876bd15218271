"""The published test sets, where the machine has them, and benchmarks made of files."""

import os
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.evaluation import ANY_ORDER, BenchmarkFiles, BenchmarkTask
from trellis_contracts.recipe import DataFormat
from trellis_train.evaluate.benchmark import Benchmark, Problem, Scored, open_benchmark

FOLDER = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", Path(__file__).parents[4] / "shared" / "data"))
GSM8K = {"test": FOLDER / "gsm8k/test.jsonl", "train": FOLDER / "gsm8k/train.jsonl"}
MATH = {"test": FOLDER / "math/test.jsonl"}
MATH500 = {"test": FOLDER / "math/math500.jsonl"}
MMLU = {"test": FOLDER / "mmlu/stem_test.jsonl"}


def needs_sets(*sets: dict[str, Path]) -> pytest.MarkDecorator:
    """Skip the test if a file is missing, and say which."""
    missing = [str(path) for each in sets for path in each.values() if not path.exists()]
    return pytest.mark.skipif(
        bool(missing), reason=f"not there (TRELLIS_BENCHMARK_DIR names the folder): {', '.join(missing)}"
    )


def order_benchmark(
    order: dict[str, Any],
    parts: dict[str, Path],
    *,
    seed: int = 0,
    data_format: DataFormat | None = None,
) -> Benchmark:
    """Open the benchmark of an order on these files."""
    files = BenchmarkFiles(
        paths={part: [str(path)] for part, path in parts.items()}, sha256="0" * 64, format=data_format
    )
    task = BenchmarkTask(label="measured", order=ANY_ORDER.validate_python(order), files=files)
    return open_benchmark(task, seed)


def score(benchmark: Benchmark, problem: Problem, output: str) -> Scored:
    """Score a complete output."""
    return benchmark.score(problem, output, is_truncated=False)
