"""What the columns of some rows mean."""

from dataclasses import dataclass, field

import pyarrow as pa
from trellis_contracts.recipe import DataFormat
from trellis_contracts.row_formats import FORMAT_ROLES


@dataclass(frozen=True)
class Layout:
    """A format, and the columns that play its roles (``trellis_contracts.row_formats.FORMAT_ROLES``)."""

    format: DataFormat
    #: In the order of the format's roles, however they were named: texts of a row join in this order.
    columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        order = {role.name: index for index, role in enumerate(FORMAT_ROLES[self.format])}
        ordered = sorted(self.columns.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
        object.__setattr__(self, "columns", dict(ordered))


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
