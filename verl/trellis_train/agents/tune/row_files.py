"""Rows of tasks in files: read in verl's form, and those of several evaluations joined in one file."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.hashing import hash_file
from trellis_contracts.recipe import DataFormat
from trellis_recipes.data.conversion import NoConversion, Place, choose_conversion
from trellis_recipes.data.row_values import BadRow

from trellis_train.agents.tune.mapping import MappedRows
from trellis_train.agents.tune.signature import Fault

_BATCH_ROWS = 1024


class UnreadableRows(ValueError):
    """A file does not hold rows with the columns that are named; says why."""

    def as_fault(self, rows: MappedRows, place: str) -> Fault:
        """Return the problem as a fault at the configuration's key."""
        wanted = ", ".join(f"{role} in the column {column}" for role, column in rows.columns.items())
        return Fault("BAD_ROWS", place, wanted, f"{rows.path}: {self}")


def convert_rows(rows: MappedRows, split: str) -> Iterator[dict[str, Any]]:
    """Convert the rows of a file to verl's format; raises ``UnreadableRows``."""
    try:
        convert = choose_conversion(rows.format, DataFormat.VERL_RL, rows.columns)
        for index, row in enumerate(_iterate(Path(rows.path))):
            yield from convert(row, Place(index, split))
    except (BadRow, NoConversion, OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise UnreadableRows(str(error)) from error


def find_row_faults(rows: MappedRows, place: str) -> list[Fault]:
    """Find unreadable rows in a file, or report that it is empty."""
    try:
        is_empty = sum(1 for _ in convert_rows(rows, "validation")) == 0
    except UnreadableRows as error:
        return [error.as_fault(rows, place)]
    return [Fault("BAD_ROWS", place, "rows", f"{rows.path} is empty")] if is_empty else []


def join_evaluations(evaluations: Mapping[str, MappedRows], folder: Path) -> MappedRows:
    """Write the rows of several evaluations to one file in ``folder``, each labeled with its name.

    verl measures by ``data_source``, so that every name has its metrics (``val-core/NAME/...``). Raises
    ``UnreadableRows`` and ``OSError``.
    """
    # Here: the supervisor of every run loads this module, and nothing that reads rows.
    from trellis_train.data.prepare import SCHEMAS

    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"evaluations.{os.getpid()}.partial"
    schema, index = SCHEMAS[DataFormat.VERL_RL], count()
    with pq.ParquetWriter(draft, schema) as writer:
        for name, rows in evaluations.items():
            converted = convert_rows(rows, "validation")
            while batch := list(islice(converted, _BATCH_ROWS)):
                named = [
                    {**row, "data_source": name, "extra_info": {**row["extra_info"], "index": next(index)}}
                    for row in batch
                ]
                writer.write_table(pa.Table.from_pylist(named, schema=schema))
    # Named after what it holds: a run that has begun keeps the rows that it began with.
    target = folder / f"evaluations-{hash_file(draft)[:24]}.parquet"
    draft.replace(target)
    return MappedRows(str(target), {}, format=DataFormat.VERL_RL)


def _iterate(path: Path) -> Iterable[dict[str, Any]]:
    if path.suffix == ".parquet":
        return _iterate_parquet(path)
    return _iterate_lines(path)


def _iterate_parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            yield from batch.to_pylist()


def _iterate_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("a line is not a JSON object")
                yield row
