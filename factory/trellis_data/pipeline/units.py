"""Into which pieces the rows of some files are cut: the same whatever works on them."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.shards import ORIGIN, one_schema
from trellis_data.pipeline.tasks import Unit


def schema_of(files: Sequence[Path]) -> pa.Schema:
    """Read the columns that the rows of all files have."""
    schemas = []
    for path in files:
        try:
            schema = pq.read_schema(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise PipelineProblem(
                "input_unreadable", f"{path} is not a readable Parquet file: {error}"
            ) from error
        place = schema.get_field_index(ORIGIN)
        schemas.append(schema.remove(place) if place >= 0 else schema)
    return one_schema(schemas, [path.name for path in files])


def cut(files: Sequence[Path], unit_rows: int) -> list[Unit]:
    """Cut files into units of about ``unit_rows`` rows, by whole row groups; an empty file is a unit too."""
    units: list[Unit] = []
    start = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        groups: list[int] = []
        rows = 0
        for group, size in enumerate(sizes):
            if groups and rows + size > unit_rows:
                units.append(Unit(path, tuple(groups), start, rows))
                start, groups, rows = start + rows, [], 0
            groups.append(group)
            rows += size
        units.append(Unit(path, tuple(groups), start, rows))
        start += rows
    return units
