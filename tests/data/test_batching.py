"""Tables of rows that are bounded by rows and by bytes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trellis_contracts.pipeline import Pipeline, Step
from trellis_contracts.recipe import DataFormat
from trellis_data import batching
from trellis_data.batching import read_tables
from trellis_data.layout import Layout
from trellis_data.pipeline.runner import Options, run
from trellis_data.statistics.collect import Depth, summarise
from trellis_data.versions.store import Entry, Store

KILO = 1024
TEXT = Layout(DataFormat.TEXT, {"text": "text"})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(0, 3000), max_size=60),
    rows=st.integers(1, 50),
    most=st.integers(100, 8000),
    group=st.integers(1, 40),
)
def test_no_row_is_lost_and_no_table_is_too_large(
    lengths: list[int], rows: int, most: int, group: int, tmp_path: Path
) -> None:
    table = pa.table({"at": pa.array(range(len(lengths)), pa.int64()), "text": ["x" * n for n in lengths]})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=group)

    with pq.ParquetFile(path) as file:
        tables = list(read_tables(file, rows, most_bytes=most))

    assert all(0 < each.num_rows <= rows for each in tables)
    assert all(each.num_rows == 1 or each.nbytes <= most for each in tables)
    assert pa.concat_tables([table.schema.empty_table(), *tables]).equals(table)


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_memory_is_flat_for_long_rows_also_where_a_file_points_at_one_value_again_and_again(
    use_dictionary: bool, tmp_path: Path
) -> None:
    # The short rows before them keep the average of a group low.
    texts = ["short"] * 4000 + ["long " * 40 * KILO] * 400
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": texts}), path, use_dictionary=use_dictionary, compression="zstd")

    before = pa.total_allocated_bytes()
    with pq.ParquetFile(path) as file:
        most = max(pa.total_allocated_bytes() - before for _ in read_tables(file, 8192))

    assert len(texts[-1]) * 400 > 70 * 2**20
    assert most < 4 * batching.MOST_BYTES


def test_versions_statistics_and_pipelines_see_small_tables_and_come_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": [f"row {n} " + "word " * KILO for n in range(60)]}), path)
    pipeline = Pipeline(
        name="p", steps=[Step(operator="length", params={"unit": "characters", "minimum": 10})]
    )

    def work(name: str) -> tuple[object, ...]:
        version = Store.create(tmp_path / name).record({"train": [path]}, Entry("rows", "tester", TEXT))
        statistics = summarise({"train": [path]}, TEXT, Depth(language_rows=0))
        report = run(
            pipeline, [path], tmp_path / f"run-{name}", layout=TEXT, options=Options(executor="inline")
        )
        rows = pa.concat_tables(
            pq.read_table(file) for file in report.files(tmp_path / f"run-{name}")["train"]
        )
        return version.commit.tree, statistics, rows.to_pylist()

    whole = work("whole")
    monkeypatch.setattr(batching.read_tables, "__defaults__", (None, 20 * KILO))
    assert work("cut") == whole
