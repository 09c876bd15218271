"""Files that the platform itself writes or checks: a JSON object a line, and the first bad line is an error.

(What people upload may have bad lines; ``trellis_data.reading`` sets those aside.)
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class BadLine(ValueError):
    """A line is no JSON object, or the file is damaged; says which line of which file."""


def read_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Read the objects of a file one at a time; skip blank lines and decompress ``.gz``.

    Raises ``BadLine``, or what reading the file raises.
    """
    # Bytes, since their lines end at line feeds alone: within JSON's strings stand U+2028 and others at which
    # ``str.splitlines`` cuts.
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(_read_lines(file, path.name), start=1):
            if line.strip():
                yield _read_line(line, f"line {number} of {path.name}")


def _read_lines(file: Iterable[bytes], name: str) -> Iterator[bytes]:
    try:
        yield from file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadLine(f"{name} is damaged or incomplete: {error}") from error


def _read_line(line: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"{place} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadLine(f"{place} is not an object")
    return value
