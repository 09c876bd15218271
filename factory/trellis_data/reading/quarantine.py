"""The rows that were not taken: one JSON object a line, with place, reason and text."""

from collections import Counter
from pathlib import Path
from types import TracebackType

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


def _encodable(text: str) -> str:
    """Keys and values of a bad row may hold half surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
