"""What can be wrong with an uploaded file, and the limits that keep reading it cheap."""

from dataclasses import asdict, dataclass
from typing import Any

#: A row longer than this is refused before it is held in memory as a whole.
MAX_ROW_BYTES = 16 * 1024 * 1024
#: Enough to see the pattern of a mistake; reading ends when they are collected.
MAX_PROBLEMS = 20
#: Deeper values are refused: no training format needs them, and Parquet readers recurse.
MAX_DEPTH = 32
#: Leaf columns after nested objects are flattened, as Parquet stores them.
MAX_LEAF_COLUMNS = 2048


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One bad row. ``line`` is the physical line in a text file; None in a Parquet file."""

    line: int | None
    row: int
    reason: str
    column: str | None = None

    def describe(self) -> str:
        """One sentence that names the place and the reason."""
        place = f"line {self.line}" if self.line is not None else f"row {self.row}"
        column = f", column '{self.column}'" if self.column else ""
        return f"{place}{column}: {self.reason}"

    def as_details(self) -> dict[str, Any]:
        """The problem as it stands in an error's ``details``."""
        return asdict(self)


class UnreadableFile(Exception):
    """The file as a whole cannot become a dataset."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class BadRows(Exception):
    """At least one row cannot be used; no row is taken."""

    def __init__(self, problems: list[RowProblem], *, is_complete: bool) -> None:
        super().__init__(problems[0].describe())
        self.problems = problems
        #: False when reading ended before the end of the file.
        self.is_complete = is_complete
