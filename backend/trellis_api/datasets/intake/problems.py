"""What an upload is refused for beyond what no file is read for."""

from typing import Any

from trellis_data.reading.problems import RowProblem

#: Enough to see the pattern of a mistake; reading ends when they are collected.
MAX_PROBLEMS = 20


def as_details(problem: RowProblem) -> dict[str, Any]:
    """The problem as it stands in an error's ``details``."""
    return {"line": problem.line, "row": problem.row, "reason": problem.reason, "column": problem.column}


class BadRows(Exception):
    """At least one row cannot be used; no row is taken."""

    def __init__(self, problems: list[RowProblem], *, is_complete: bool) -> None:
        super().__init__(problems[0].describe())
        self.problems = problems
        #: False when reading ended before the end of the file.
        self.is_complete = is_complete
