"""The event spool: trainers append events to a file, the entrypoint ships them to the platform.

A file between the two means that a slow or absent API never holds up a step, and
that what was measured survives the process that measured it.
"""

import contextlib
import errno
import os
import threading
import time
from io import FileIO
from pathlib import Path

from trellis_contracts.attempt import EVENTS_FOLDER, STOP_FILE
from trellis_contracts.events import Event
from trellis_contracts.spool import split_segment_name

ATTEMPT_DIR_VARIABLE = "TRELLIS_ATTEMPT_DIR"
#: A file of this size is left for a new one, so that the reader can delete what it has sent.
SEGMENT_BYTES = 16_000_000
#: How long a full disk is waited for: a run that stands still meanwhile loses nothing.
FULL_DISK_PATIENCE_S = 60.0
_FULL_DISK_PAUSE_S = 0.2
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Spool:
    """Appends events to ``<attempt_dir>/events/<producer>.<segment>.jsonl``, one JSON object a line.

    Every process writes to files of its own, so that lines never interleave, on
    network file systems too. Threads of one process may share a spool.
    """

    def __init__(
        self,
        attempt_dir: str | Path,
        producer: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        patience_s: float = FULL_DISK_PATIENCE_S,
    ) -> None:
        self._folder = Path(attempt_dir) / EVENTS_FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._producer = producer
        self._segment_bytes = segment_bytes
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._segment = self._find_last_segment()
        self._file = self._open_segment()

    @classmethod
    def from_environment(cls, producer: str) -> "Spool":
        """Open the spool of this process's attempt (``TRELLIS_ATTEMPT_DIR``)."""
        return cls(os.environ[ATTEMPT_DIR_VARIABLE], producer)

    def write(self, event: Event) -> None:
        """Append one event in a single write, so that a reader never sees half of it for long.

        A disk that is full is waited for; one that stays full raises, and nothing of the event is left.
        """
        line = event.model_dump_json().encode() + b"\n"
        with self._lock:
            self._append(line)
            if self._file.tell() >= self._segment_bytes:
                self._file.close()
                self._segment += 1
                self._file = self._open_segment()

    def _append(self, line: bytes) -> None:
        begins = os.fstat(self._file.fileno()).st_size
        gives_up = time.monotonic() + self._patience_s
        while line:
            try:
                # On a disk that gets full with it, a part of a line may be written without an error.
                line = line[self._file.write(line) :]
            except OSError as error:
                if error.errno not in _FULL or time.monotonic() >= gives_up:
                    with contextlib.suppress(OSError):  # the first error is the one to tell
                        self._file.truncate(begins)
                    raise
                time.sleep(_FULL_DISK_PAUSE_S)

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
    """Tell whether the platform asked this attempt to checkpoint and leave."""
    return (Path(attempt_dir or os.environ[ATTEMPT_DIR_VARIABLE]) / STOP_FILE).exists()
