"""The event spool: trainers append events to a file, the entrypoint ships them to the platform.

A file between the two means that a slow or absent API never holds up a step, and
that what was measured survives the process that measured it.
"""

import os
import threading
from io import FileIO
from pathlib import Path

from trellis_contracts.attempt import EVENTS_FOLDER, STOP_FILE
from trellis_contracts.events import Event
from trellis_contracts.spool import split_segment_name

ATTEMPT_DIR_VARIABLE = "TRELLIS_ATTEMPT_DIR"
#: A file of this size is left for a new one, so that the reader can delete what it has sent.
SEGMENT_BYTES = 16_000_000


class Spool:
    """Appends events to ``<attempt_dir>/events/<producer>.<segment>.jsonl``, one JSON object a line.

    Every process writes to files of its own, so that lines never interleave, on
    network file systems too. Threads of one process may share a spool.
    """

    def __init__(self, attempt_dir: str | Path, producer: str, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = Path(attempt_dir) / EVENTS_FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._producer = producer
        self._segment_bytes = segment_bytes
        self._lock = threading.Lock()
        self._segment = self._find_last_segment()
        self._file = self._open_segment()

    @classmethod
    def from_environment(cls, producer: str) -> "Spool":
        """The spool of the attempt that this process belongs to (``TRELLIS_ATTEMPT_DIR``)."""
        return cls(os.environ[ATTEMPT_DIR_VARIABLE], producer)

    def write(self, event: Event) -> None:
        """Append one event in a single write, so that a reader never sees half of it for long."""
        line = event.model_dump_json().encode() + b"\n"
        with self._lock:
            self._file.write(line)
            if self._file.tell() >= self._segment_bytes:
                self._file.close()
                self._segment += 1
                self._file = self._open_segment()

    def _find_last_segment(self) -> int:
        names = [split_segment_name(path.name) for path in self._folder.glob(f"{self._producer}.*jsonl")]
        return max((segment for producer, segment in names if producer == self._producer), default=1)

    def _open_segment(self) -> FileIO:
        path = self._folder / f"{self._producer}.{self._segment}.jsonl"
        file = path.open("a+b", buffering=0)
        if file.seek(0, os.SEEK_END) > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # an earlier process was killed in the middle of a line
                file.write(b"\n")
        return file


def is_stop_requested(attempt_dir: str | Path | None = None) -> bool:
    """Whether the platform asked this attempt to checkpoint and leave."""
    return (Path(attempt_dir or os.environ[ATTEMPT_DIR_VARIABLE]) / STOP_FILE).exists()
