"""Where a score stands in a row: a column of numbers, or a field of a column of several."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis_data.operator import OperatorProblem


def score_type(schema: pa.Schema, path: str) -> pa.DataType:
    """Return the type of the score at ``path`` (``quality.total``); raise ``OperatorProblem`` if missing."""
    name, _, part = path.partition(".")
    # A column's own name may hold a dot.
    if path in schema.names:
        name, part = path, ""
    if name not in schema.names:
        raise OperatorProblem(
            "column_missing", f"There is no column '{name}'; there are {', '.join(schema.names)}."
        )
    kind = schema.field(name).type
    if not part:
        return kind
    parts = [field.name for field in kind] if pa.types.is_struct(kind) else []
    if part not in parts:
        known = ", ".join(parts) or "none"
        raise OperatorProblem(
            "part_missing", f"The column '{name}' has no part '{part}'; its parts are {known}."
        )
    return kind.field(part).type


def score_column(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return the column, or the field of a column, at ``path``."""
    name, _, part = path.partition(".")
    if path in table.column_names:
        name, part = path, ""
    column = table.column(name)
    return pc.struct_field(column, part) if part else column


def scores_of(table: pa.Table, path: str) -> np.ndarray:
    """Return the numbers at ``path`` (float64), with NaN for null."""
    values: np.ndarray = score_column(table, path).cast(pa.float64(), safe=False).to_numpy()
    return values


def check_number(schema: pa.Schema, path: str) -> None:
    """Raise ``OperatorProblem`` where ``path`` names no numbers."""
    kind = score_type(schema, path)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise OperatorProblem("not_a_number", f"'{path}' holds no numbers ({kind}).")
