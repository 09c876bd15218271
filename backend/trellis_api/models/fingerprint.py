"""One hash for a model folder, so that a run's manifest can name the very weights it started from.

``content``: SHA-256 over the sorted lines "path NUL size NUL SHA-256 of the file".
``sampled``, for folders above ``MAX_CONTENT_BYTES``: the same lines, but a file
above ``SAMPLED_FILE_BYTES`` is represented by its first and last block and by
``SAMPLE_COUNT`` evenly spaced ones: enough to tell two trainings of one model
apart, not enough to prove that a file is unharmed.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from trellis_contracts.hashing import hash_file

MAX_CONTENT_BYTES = 2 * 1024**3
SAMPLED_FILE_BYTES = 64 * 1024**2
SAMPLE_COUNT = 64
_EDGE_BYTES = 1024**2
_SAMPLE_BYTES = 64 * 1024


def fingerprint(folder: Path, files: Iterable[Path]) -> tuple[str, Literal["content", "sampled"]]:
    """Hash these files of the folder, and return the kind of the hash with it."""
    sizes = {path: path.stat().st_size for path in files}
    is_sampled = sum(sizes.values()) > MAX_CONTENT_BYTES
    total = hashlib.sha256()
    for path in sorted(sizes, key=lambda path: path.relative_to(folder).as_posix()):
        uses_sample = is_sampled and sizes[path] > SAMPLED_FILE_BYTES
        digest = _hash_samples(path, sizes[path]) if uses_sample else hash_file(path)
        total.update(f"{path.relative_to(folder).as_posix()}\0{sizes[path]}\0{digest}\n".encode())
    return total.hexdigest(), "sampled" if is_sampled else "content"


def _hash_samples(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    stride = size // SAMPLE_COUNT
    spans = [(0, _EDGE_BYTES), (max(0, size - _EDGE_BYTES), _EDGE_BYTES)]
    spans += [(index * stride, _SAMPLE_BYTES) for index in range(SAMPLE_COUNT)]
    with path.open("rb") as file:
        for start, length in spans:
            file.seek(start)
            digest.update(file.read(length))
    return digest.hexdigest()
