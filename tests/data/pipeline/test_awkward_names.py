"""Columns and splits that are named like what a run itself writes: no row is lost to them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.pipeline.run_directory import RunDirectory
from trellis_data.pipeline.runner import Options, run

pytestmark = pytest.mark.usefixtures("small_operators")
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
INLINE = Options(executor="inline", batch_rows=16, unit_rows=100)
DROP_SHORT = {"operator": "test_drop_short", "params": {"shortest": 8}}
Shards = Callable[..., list[Path]]


def pipeline(*steps: dict[str, Any]) -> Pipeline:
    return Pipeline.model_validate({"name": "p", "steps": list(steps)})


def test_dropped_rows_can_be_sent_through_a_pipeline_again(shards: Shards, tmp_path: Path) -> None:
    rows = [{"id": i, "text": "short" if i % 2 else "long enough"} for i in range(50)]
    first = run(pipeline(DROP_SHORT), shards(rows), tmp_path / "one", layout=TEXT, options=INLINE)
    dropped = tmp_path / "one" / first.dropped["test_drop_short"]

    again = run(pipeline(DROP_SHORT), [dropped], tmp_path / "two", layout=TEXT, options=INLINE)

    lost = pq.read_table(tmp_path / "two" / again.dropped["test_drop_short"])
    assert sorted(lost.column_names) == ["id", "text", "trellis_position", "trellis_reason"]
    assert lost["id"].to_pylist() == [i for i in range(50) if i % 2]
    assert lost["trellis_position"].to_pylist() == list(range(25))


def test_a_split_may_be_named_like_a_file_of_dropped_rows(shards: Shards, tmp_path: Path) -> None:
    rows = [
        {"id": i, "text": "short" if i % 3 == 0 else "long enough", "split": "dropped-0"} for i in range(60)
    ]

    report = run(pipeline(DROP_SHORT), shards(rows), tmp_path / "w", layout=TEXT, options=INLINE)

    kept = pa.concat_tables([pq.read_table(path) for path in report.files(tmp_path / "w")["dropped-0"]])
    assert kept["id"].to_pylist() == [i for i in range(60) if i % 3]
    assert pq.read_table(tmp_path / "w" / report.dropped["test_drop_short"]).num_rows == 20


def test_a_fresh_start_that_is_cut_short_is_no_finished_run(
    shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, work = shards([{"text": "long enough"}] * 10), tmp_path / "w"
    run(pipeline(DROP_SHORT), files, work, layout=TEXT, options=INLINE)
    remove = shutil.rmtree

    def remove_and_end(path: Path, **options: Any) -> None:
        remove(path, **options)
        if Path(path).name == "output":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", remove_and_end)
        with pytest.raises(KeyboardInterrupt), RunDirectory(work).locked():
            RunDirectory(work).enter({}, fresh=True)

    report = run(pipeline(DROP_SHORT), files, work, layout=TEXT, options=INLINE)

    assert [path.exists() for path in report.files(work)["train"]] == [True] * 3
