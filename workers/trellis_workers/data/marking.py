"""Rows that know which split they are from, so that a pipeline over several leaves each in its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.pipeline import Pipeline
from trellis_data.atomic_files import publishing
from trellis_data.batching import read_tables

#: The column by which a run parts its output, and which it takes away again.
COLUMN = "split"
_BATCH_ROWS = 8192


def needs_marks(pipeline: Pipeline, splits: Mapping[str, Sequence[Path]]) -> bool:
    """Tell whether splits would get mixed up: not with one, with marked rows, or with a split step."""
    if len(splits) < 2 or any(step.operator == "split" for step in pipeline.steps):
        return False
    first = next(path for paths in splits.values() for path in paths)
    return COLUMN not in pq.read_schema(first).names


def mark_splits(splits: Mapping[str, Sequence[Path]], folder: Path) -> list[Path]:
    """Write copies of the files with a split column, once, so that a resumed run finds the same files."""
    if not folder.exists():
        with publishing(folder) as draft:
            for split, paths in splits.items():
                for number, path in enumerate(paths):
                    _mark(path, draft / f"{split}-{number:06d}.parquet", split)
    return [
        folder / f"{split}-{number:06d}.parquet"
        for split, paths in splits.items()
        for number in range(len(paths))
    ]


def _mark(path: Path, target: Path, split: str) -> None:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow.append(pa.field(COLUMN, pa.string()))
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for table in read_tables(file, _BATCH_ROWS):
                mark = pa.array([split] * table.num_rows, pa.string())
                writer.write_table(table.append_column(COLUMN, mark))
