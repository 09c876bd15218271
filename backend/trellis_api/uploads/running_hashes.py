"""SHA-256 of uploads while they arrive, so that nobody has to read a file again when its last byte is there.

A hash that is half done cannot be put on disk. It ends with the process, and where another process has
received a piece in between; the worker that imports the file reads it as a whole then.
"""

import hashlib
import threading
from collections import OrderedDict

#: Of uploads that nobody goes on with the oldest are forgotten.
_MOST = 1024


class RunningHashes:
    """What this process knows of uploads of which it has received every byte so far."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[int, hashlib._Hash]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, upload_id: str, offset: int) -> "hashlib._Hash | None":
        """Take the hash of the first ``offset`` bytes; None if other bytes were written in between."""
        with self._lock:
            known, found = self._held.pop(upload_id, (0, hashlib.sha256()))
        return found if known == offset else None

    def keep(self, upload_id: str, offset: int, whole: "hashlib._Hash | None") -> None:
        """Remember it for the next piece."""
        if whole is None:
            return
        with self._lock:
            self._held[upload_id] = (offset, whole)
            while len(self._held) > _MOST:
                self._held.popitem(last=False)
