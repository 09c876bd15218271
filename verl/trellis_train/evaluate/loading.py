"""Rows of a benchmark's files: JSON lines, also compressed, and Parquet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.evaluation import BenchmarkFiles
from trellis_data.json_objects import BadLine, read_objects

from trellis_train.evaluate.benchmark import BenchmarkUnusable

_BATCH_ROWS = 1024


@dataclass(frozen=True)
class Row:
    """A row, and where it stands: file and number, from 1, for messages to people."""

    values: dict[str, Any]
    #: Position in its part, over all files: 0, 1, 2 ...
    position: int
    file: str
    number: int

    @property
    def place(self) -> str:
        """For messages: ``row 3 of test.jsonl``."""
        return f"row {self.number} of {self.file}"

    def require(self, field: str, *kinds: type) -> Any:
        """Return the field's value; ``BenchmarkUnusable`` if it is missing, null or of another type."""
        value = self.values.get(field)
        if value is None:
            raise BenchmarkUnusable(f"{self.place} has no '{field}'")
        # True is an int to Python, but no number to people.
        if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise BenchmarkUnusable(f"'{field}' in {self.place} is {type(value).__name__}, not {names}")
        return value

    def text(self, field: str) -> str:
        """Return the field's text; ``BenchmarkUnusable`` if it is blank."""
        value: str = self.require(field, str)
        if not value.strip():
            raise BenchmarkUnusable(f"'{field}' in {self.place} is empty")
        return value


def has_part(files: BenchmarkFiles | None, part: str) -> bool:
    """Tell whether the benchmark has files of this part."""
    return files is not None and bool(files.paths.get(part))


def load_part(files: BenchmarkFiles | None, part: str) -> list[Row]:
    """Load all rows of a part in the order of its files.

    ``BenchmarkUnusable`` where there is no such part, a file cannot be read, or it holds no row.
    """
    if files is None or not has_part(files, part):
        raise BenchmarkUnusable(f"the benchmark has no split '{part}'")
    rows: list[Row] = []
    for path in map(Path, files.paths[part]):
        for number, values in enumerate(_read(path), start=1):
            rows.append(Row(values, len(rows), path.name, number))
    if not rows:
        raise BenchmarkUnusable(f"the split '{part}' is empty: {', '.join(files.paths[part])}")
    return rows


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            yield from _read_parquet(path)
        elif path.name.endswith((".jsonl", ".jsonl.gz")):
            yield from read_objects(path)
        else:
            raise BenchmarkUnusable(f"{path.name} is neither .jsonl, .jsonl.gz nor .parquet")
    except BadLine as error:
        raise BenchmarkUnusable(str(error)) from error
    except (OSError, EOFError, pa.ArrowInvalid) as error:
        raise BenchmarkUnusable(f"{path.name} cannot be read: {error}") from error


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            yield from batch.to_pylist()


def check_names(wanted: Sequence[str] | None, known: Sequence[str], what: str) -> set[str] | None:
    """Map wanted names to the rows' names, ignoring case and ``_`` versus blank; None for all."""
    if wanted is None:
        return None
    by_name = {_plain(name): name for name in known}
    unknown = sorted(name for name in wanted if _plain(name) not in by_name)
    if unknown:
        raise BenchmarkUnusable(
            f"unknown {what}: {', '.join(unknown)}; choose from {', '.join(sorted(known))}"
        )
    return {by_name[_plain(name)] for name in wanted}


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", " ")
