"""What can be wrong with a file and its rows, and the limits that keep reading it cheap."""

from dataclasses import dataclass
from typing import Any

#: A row longer than this is refused before it is held in memory as a whole.
MAX_ROW_BYTES = 16 * 1024 * 1024
#: Deeper values are refused: no training format needs them, and Parquet readers recurse.
MAX_DEPTH = 32
#: Leaf columns after nested objects are flattened, as Parquet stores them.
MAX_LEAF_COLUMNS = 2048
#: How much of a bad row's text is kept beside the reason.
MAX_RAW_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One bad row, or what is wrong between rows. ``line`` is the physical line in a text file, else None."""

    line: int | None
    #: Counted from 1 over all rows of the file, bad ones included.
    row: int
    reason: str
    column: str | None = None
    code: str = "row_invalid"
    #: The row as it stands in the file, cut after ``MAX_RAW_CHARACTERS``.
    raw: str = ""
    #: False where no row was lost, such as where a comma is missing between two.
    is_row: bool = True

    def describe(self) -> str:
        """Describe the problem in one sentence with place and reason."""
        place = f"line {self.line}" if self.line is not None else f"row {self.row}"
        column = f", column '{self.column}'" if self.column else ""
        return f"{place}{column}: {self.reason}"


class UnreadableFile(Exception):
    """The file as a whole cannot be read as rows."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def shorten(text: str | bytes) -> str:
    """Shorten a bad row's text for the quarantine; bytes that are not UTF-8 become ``\\xNN``."""
    if isinstance(text, str):
        text = text[:MAX_RAW_CHARACTERS].encode("utf-8", "surrogatepass")
    # Four bytes a character at most; bytes of a half surrogate read as foreign bytes do.
    return text[: 4 * MAX_RAW_CHARACTERS].decode("utf-8", "backslashreplace")[:MAX_RAW_CHARACTERS]
