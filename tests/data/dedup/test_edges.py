"""What every way of finding duplicates must bear: no rows, one row, one enormous row, any cut into shards."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from trellis_data.catalogue import find_operator
from trellis_data.layout import Batch
from trellis_data.operator import Context
from trellis_testing.global_operators import TEXTS, run_global
from trellis_tools.bench.data.corpus import chunks

OPERATORS = ["exact_duplicates", "minhash_duplicates", "simhash_duplicates", "semantic_duplicates", "split"]


def make(name: str, **params: Any) -> Any:
    operator = find_operator(name)
    return operator(operator.Params(**params), Context(seed=3))


@pytest.mark.parametrize("name", OPERATORS)
def test_no_rows_are_no_problem(name: str, tmp_path: Path) -> None:
    operator = make(name)
    empty = pa.table({"text": pa.array([], pa.string())})
    scan, reduced = tmp_path / "scan", tmp_path / "reduced"
    scan.mkdir()
    reduced.mkdir()

    operator.scan(iter([Batch(empty, TEXTS)]), scan)
    operator.reduce([scan], reduced)

    assert len(operator.apply(Batch(empty, TEXTS), reduced).keep) == 0


@pytest.mark.parametrize("name", OPERATORS)
def test_a_shard_that_yields_nothing_changes_nothing(name: str, tmp_path: Path) -> None:
    operator = make(name)
    full, empty, reduced = (tmp_path / each for each in ("full", "empty", "reduced"))
    for folder in (full, empty, reduced):
        folder.mkdir()
    batch = Batch(pa.table({"text": ["one text", "another text", "one text"]}), TEXTS)

    operator.scan(iter([]), empty)
    operator.scan(iter([batch]), full)
    operator.reduce([empty, full], reduced)

    keep = operator.apply(batch, reduced).keep
    assert keep.tolist() == ([True] * 3 if name == "split" else [True, True, False])


@pytest.mark.parametrize("name", OPERATORS)
def test_an_enormous_text_among_small_ones_is_a_row_like_others(name: str, tmp_path: Path) -> None:
    words = " ".join(f"w{number * 7919 % 100_003}" for number in range(300_000))
    table = pa.table({"text": [words, "small", words, "字" * 100_000, "other"]})

    ran = run_global(make(name), table, tmp_path)

    assert ran.keep.tolist() == ([True] * 5 if name == "split" else [True, True, False, True, True])


@pytest.mark.parametrize("name", OPERATORS)
def test_the_cut_into_shards_and_batches_changes_nothing(name: str, tmp_path: Path) -> None:
    ((documents, _),) = list(chunks(1500, 8))
    table = pa.table({"text": documents})

    # The encoder would read the same documents, at a hundredth of the speed.
    params = {"source": "lexical"} if name == "semantic_duplicates" else {}

    one = run_global(make(name, **params), table, tmp_path / "one", shards=1, size=1500)
    many = run_global(make(name, **params), table, tmp_path / "many", shards=7, size=64)

    assert np.array_equal(one.keep, many.keep)
    assert one.table.equals(many.table)
    assert one.findings == many.findings
