"""The rows that were not taken: one JSON object a line, with place, reason and text."""

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from trellis_data.reading.problems import RowProblem

QUARANTINE_FILE = "quarantine.jsonl"
#: Of the problems that a report shows.
_MAX_SHOWN = 20


class Quarantine:
    """Writes problems as they come."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.count = 0
        self.reasons: Counter[str] = Counter()
        self.first: list[dict[str, object]] = []

    def __enter__(self) -> "Quarantine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, source: str, problem: RowProblem) -> None:
        """Keep one row's problem."""
        entry: dict[str, object] = {
            "source": source,
            "line": problem.line,
            "row": problem.row,
            "code": problem.code,
            "column": problem.column,
            "message": problem.reason,
            "raw": problem.raw,
        }
        clean = {key: _encodable(value) if isinstance(value, str) else value for key, value in entry.items()}
        self._file.write(orjson.dumps(clean) + b"\n")
        self.count += 1
        self.reasons[problem.code] += 1
        if len(self.first) < _MAX_SHOWN:
            self.first.append({name: value for name, value in clean.items() if name != "raw"})


class Warnings:
    """What is wrong with files beside their rows: a line for each file and code, however often it occurs."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, source: str, problem: RowProblem) -> None:
        """Count one; the first of its kind is told."""
        first = {"source": source, "code": problem.code, "message": problem.reason, "line": problem.line}
        entry = self._found.setdefault((source, problem.code), first | {"count": 0})
        entry["count"] += 1

    @property
    def all(self) -> list[dict[str, Any]]:
        """In the order in which they were met."""
        return list(self._found.values())


def _encodable(text: str) -> str:
    """Escape half surrogates, which keys and values of a bad row may contain."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
