"""Rows as readers hand them on: many at a time, with the places that they come from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trellis_data.reading.problems import RowProblem

#: A block ends at whichever comes first.
BLOCK_ROWS = 4096
BLOCK_BYTES = 4 * 1024 * 1024


class SourceRow(NamedTuple):
    """One row as it stands in the file; ``size`` is its length in bytes, or characters."""

    line: int
    value: dict[str, Any]
    size: int


@dataclass
class Block:
    """Rows that follow each other in a file, and the problems of those among them that cannot be read."""

    #: Number of the first row, bad ones counted, from 1.
    first_row: int
    rows: list[SourceRow] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)
    #: What is wrong between the rows.
    warnings: list[RowProblem] = field(default_factory=list)
    #: Reads the same rows again, more slowly, where a number has become another one; None where none can.
    read_exactly: Callable[[], "Block"] | None = None

    @property
    def row_count(self) -> int:
        """All rows of the block, bad ones counted."""
        return len(self.rows) + len(self.problems)

    def in_order(self) -> Iterator[SourceRow | RowProblem]:
        """Yield the rows in file order, problems in the place of bad ones, and then the warnings."""
        bad = {problem.row: problem for problem in self.problems}
        good = iter(self.rows)
        for number in range(self.first_row, self.first_row + self.row_count):
            yield bad[number] if number in bad else next(good)
        yield from self.warnings


def gather(rows: Iterator[SourceRow | RowProblem]) -> Iterator[Block]:
    """Collect single rows into blocks."""
    block, size = Block(1), 0
    for item in rows:
        if isinstance(item, RowProblem) and not item.is_row:
            block.warnings.append(item)
        elif isinstance(item, RowProblem):
            block.problems.append(item)
            size += len(item.raw)
        else:
            block.rows.append(item)
            size += item.size
        if block.row_count + len(block.warnings) >= BLOCK_ROWS or size >= BLOCK_BYTES:
            yield block
            block, size = Block(block.first_row + block.row_count), 0
    if block.row_count or block.warnings:
        yield block
