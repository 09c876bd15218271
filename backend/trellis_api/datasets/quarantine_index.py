"""Where the rows of a quarantine file begin, and how many there are of each reason.

A file is read through once, when somebody first asks for more than its beginning; what was found lies in the
folder ``index`` beside it from then on.
"""

import logging
from collections import Counter
from pathlib import Path

import orjson
from pydantic import BaseModel, ValidationError
from trellis_data.atomic_files import write_atomically

log = logging.getLogger(__name__)
#: Rows from one noted place to the next: as many are read and passed over at most.
STEP = 500


class QuarantineIndex(BaseModel):
    """What is known of a file."""

    #: Of the file that it was made of; another one has another.
    size_bytes: int
    mtime_ns: int
    reasons: dict[str, int]
    #: Byte at which every ``STEP``-th row begins.
    starts: list[int]

    def start_of(self, row: int) -> tuple[int, int]:
        """Return the byte offset to read from for a row, and how many rows lie between it and the row."""
        place = min(row // STEP, len(self.starts) - 1)
        return self.starts[place], row - place * STEP


def index_place(path: Path) -> Path:
    """Return the path of a file's index."""
    return path.parent / "index" / f"{path.stem}.json"


def find_index(path: Path) -> QuarantineIndex:
    """Return the index of a file; build it if there is none or the file has changed."""
    place = index_place(path)
    found = path.stat()
    try:
        index = QuarantineIndex.model_validate_json(place.read_bytes())
    except FileNotFoundError:
        index = None
    except ValidationError:
        log.warning("%s is no index and is made again", place)
        index = None
    if index is None or (index.size_bytes, index.mtime_ns) != (found.st_size, found.st_mtime_ns):
        index = _read_through(path, found.st_size, found.st_mtime_ns)
        try:
            write_atomically(place, index.model_dump_json())
        except OSError as error:
            # It serves this answer; the next one reads the file again.
            log.warning("%s cannot be written: %s", place, error)
    return index


def _read_through(path: Path, size_bytes: int, mtime_ns: int) -> QuarantineIndex:
    reasons: Counter[str] = Counter()
    starts, position = [0], 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            reasons[str(orjson.loads(line)["code"])] += 1
            position += len(line)
            if number % STEP == 0:
                starts.append(position)
    return QuarantineIndex(size_bytes=size_bytes, mtime_ns=mtime_ns, reasons=dict(reasons), starts=starts)
