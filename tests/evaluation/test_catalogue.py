"""The catalogue of benchmarks against the contract and against the real files."""

import gzip
import os
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from trellis_contracts import evaluation
from trellis_evaluation.catalogue import UnknownBenchmark, get_benchmark, list_benchmarks

FOLDER = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", Path(__file__).parents[3] / "shared" / "data"))


def test_every_benchmark_that_can_be_ordered_and_has_files_is_in_the_catalogue() -> None:
    orders: list[type[BaseModel]] = [
        evaluation.Gsm8kOrder,
        evaluation.MathOrder,
        evaluation.HumanEvalOrder,
        evaluation.MmluOrder,
    ]
    names = {name for order in orders for name in get_args(order.model_fields["benchmark"].annotation)}

    assert {entry.name for entry in list_benchmarks()} == names
    with pytest.raises(UnknownBenchmark, match="no benchmark 'x'"):
        get_benchmark("x")


@pytest.mark.parametrize("entry", list_benchmarks(), ids=lambda entry: entry.name)
def test_an_entry_says_what_a_person_must_know(entry) -> None:
    texts = [entry.title, entry.description]

    assert all(text.en.strip() and text.zh.strip() for text in texts)
    assert entry.paper
    assert entry.license
    assert set(entry.groups) <= set(entry.group_kinds)


@pytest.mark.parametrize("entry", list_benchmarks(), ids=lambda entry: entry.name)
def test_the_real_files_have_as_many_rows_as_the_catalogue_says(entry) -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"no benchmark files in {FOLDER}")

    for part in entry.parts.values():
        if part.mirror:
            rows = sum(count_lines(FOLDER / path) for path in part.mirror)
            assert rows == (part.mirror_rows or part.rows)


def count_lines(path: Path) -> int:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        return sum(1 for line in file if line.strip())
