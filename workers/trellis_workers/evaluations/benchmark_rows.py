"""Counts the rows of benchmark files and the problems of each group, in JSON lines and Parquet."""

import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_data.json_objects import BadLine, read_objects

LINES, COMPRESSED_LINES, PARQUET = ".jsonl", ".jsonl.gz", ".parquet"
_BATCH_ROWS = 1024


class UnfitFile(Exception):
    """A file is not what the catalogue says; the message names it and says why."""


def ending_of(name: str) -> str:
    """Return the file's suffix, which says how it is read; ``UnfitFile`` for any other."""
    for ending in (COMPRESSED_LINES, LINES, PARQUET):
        if name.endswith(ending):
            return ending
    raise UnfitFile(f"{name} is neither JSON Lines nor Parquet.")


def count_rows(
    paths: Sequence[Path], columns: Mapping[str, Sequence[str]]
) -> tuple[int, dict[str, dict[str, int]]]:
    """Count the rows of all files, and those of each name in a group.

    ``columns`` names for each kind of group the columns that may hold it; the first that a row has counts.
    """
    rows, groups = 0, {kind: Counter[str]() for kind in columns}
    for path in paths:
        for row in read_rows(path):
            rows += 1
            for kind, names in columns.items():
                value = next((row[name] for name in names if row.get(name) is not None), None)
                if value is not None:
                    groups[kind][_name_group(kind, value)] += 1
    return rows, {kind: dict(sorted(counts.items())) for kind, counts in groups.items()}


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; ``UnfitFile`` if it cannot be read."""
    try:
        if ending_of(path.name) == PARQUET:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS):
                    yield from batch.to_pylist()
            return
        yield from read_objects(path)
    except BadLine as error:
        raise UnfitFile(str(error)) from error
    except (pa.ArrowException, gzip.BadGzipFile, EOFError) as error:
        raise UnfitFile(f"{path.name} cannot be read: {error}") from error


def _name_group(kind: str, value: Any) -> str:
    """Name a group as in the benchmark's scores: a level may be a number, a subject have spaces."""
    if kind == "level" and isinstance(value, int):
        return f"Level {value}"
    return str(value).lower().replace(" ", "_") if kind == "subject" else str(value)
