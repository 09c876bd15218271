"""What the columns of some rows mean."""

from dataclasses import dataclass, field

import pyarrow as pa
from trellis_contracts.recipe import DataFormat


@dataclass(frozen=True)
class Layout:
    """A format, and the columns that play its roles (``trellis_contracts.rows.FORMAT_ROLES``)."""

    format: DataFormat
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Rows that travel together."""

    table: pa.Table
    layout: Layout
    #: Position of the first row among all rows of the step's input; rows keep their order. For global
    #: operators: a row operator decides by the row alone and is told 0.
    start: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)
