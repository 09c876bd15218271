"""Parquet files between and after the steps: one schema for all, parted by split at the end."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trellis_data.pipeline.problem import PipelineProblem

#: Column between stages: where a row stood in the pipeline's input.
ORIGIN = "__trellis_origin"
#: Output of a pipeline that parts nothing.
WHOLE = "train"
_SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_SPLITS = 64


def one_schema(schemas: Sequence[pa.Schema], names: Sequence[str]) -> pa.Schema:
    """Unify the schemas of all files; raise ``PipelineProblem`` that names the first that does not fit."""
    unified = schemas[0].remove_metadata()
    for schema, name in zip(schemas, names, strict=True):
        try:
            unified = pa.unify_schemas([unified, schema.remove_metadata()], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise PipelineProblem(
                "schemas_differ", f"The columns of {name} do not fit those of {names[0]}: {error}"
            ) from error
    return unified


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with these columns, in this order and type; missing ones are null."""
    if table.schema.equals(schema):
        return table
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


class ParquetAppender:
    """A Parquet file that takes its schema from the first table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Add rows; they are brought into the first table's types."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, table.schema.remove_metadata(), compression="zstd")
        if table.num_rows:
            self._writer.write_table(conform(table, self._writer.schema))
            self.rows += table.num_rows

    def close(self) -> None:
        """End the file; without a table there is none."""
        if self._writer is not None:
            self._writer.close()


class ShardWriter:
    """The rows that leave a stage for a unit: one file, or one for each split."""

    def __init__(self, folder: Path, partition_by: str | None) -> None:
        self._folder = folder
        self._partition_by = partition_by
        self._files: dict[str, ParquetAppender] = {}

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each file by its stem."""
        return {name: file.rows for name, file in self._files.items()}

    def write(self, table: pa.Table, origins: np.ndarray) -> None:
        """Add rows that stood at ``origins`` in the pipeline's input."""
        if self._partition_by is None:
            self._append("rows", table.append_column(ORIGIN, pa.array(origins, pa.int64())))
            return
        if self._partition_by not in table.column_names:
            self._append(WHOLE, table)
            return
        column = table.column(self._partition_by).cast(pa.string())
        rest = table.drop_columns([self._partition_by])
        if not table.num_rows:
            self._append(WHOLE, rest)
        for name in sorted(pc.unique(column).to_pylist(), key=str):
            chosen = column.is_null() if name is None else pc.equal(column, name)
            self._append(self._checked(name), rest.filter(chosen))

    def close(self) -> None:
        """End all files."""
        for file in self._files.values():
            file.close()

    def _append(self, name: str, table: pa.Table) -> None:
        if name not in self._files:
            self._files[name] = ParquetAppender(self._folder / f"{name}.parquet")
        self._files[name].write(table)

    def _checked(self, name: str | None) -> str:
        if name is None:
            return WHOLE
        if not _SPLIT_NAME.fullmatch(name) or (name not in self._files and len(self._files) >= _MAX_SPLITS):
            raise PipelineProblem(
                "split_unfit",
                f"The column '{self._partition_by}' says which split a row belongs to, but holds "
                f"{name[:80]!r}: names are letters, digits, '.', '_' and '-', at most {_MAX_SPLITS} of them. "
                "Rename the column before the pipeline, or let nothing be parted.",
            )
        return name
