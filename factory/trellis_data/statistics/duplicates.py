"""How many rows are the same as one before them: exact, by their digests, in files rather than in memory."""

from pathlib import Path

import numpy as np

from trellis_data.versions.hashing import DIGEST

_BUCKETS = 64
#: Digests that are held before they are written.
_HELD = 65_536


class DuplicateCount:
    """Takes digests in a stream; the folder holds 16 bytes a row meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / f"digests-{bucket:02d}" for bucket in range(_BUCKETS)]
        self._held: list[np.ndarray] = []
        self._count = 0

    def add(self, digests: np.ndarray) -> None:
        """Take the digests of some rows."""
        self._held.append(digests)
        self._count += len(digests)
        if self._count >= _HELD:
            self._write()

    def finish(self) -> int:
        """Return the number of duplicates: rows minus distinct rows."""
        self._write()
        duplicates = 0
        for path in self._paths:
            if path.exists():
                digests = np.fromfile(path, dtype=DIGEST)
                duplicates += len(digests) - len(np.unique(digests))
                path.unlink()
        return duplicates

    def _write(self) -> None:
        if not self._held:
            return
        digests = np.concatenate(self._held)
        bucket = digests["high"] % np.uint64(_BUCKETS)
        ordered = digests[np.argsort(bucket, kind="stable")]
        ends = np.cumsum(np.bincount(bucket.astype(np.int64), minlength=_BUCKETS))
        for path, part in zip(self._paths, np.split(ordered, ends[:-1]), strict=True):
            with path.open("ab") as file:
                part.tofile(file)
        self._held, self._count = [], 0
