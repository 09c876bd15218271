"""A tar archive that is never written: any part of it can be made from the list of its files.

The same files make the same bytes, so that a download that broke off goes on where it stopped. A file that
is shorter or longer than it was listed breaks the answer off: the client sees that bytes are missing.
"""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trellis_api.downloads.listing import Folder

_PIECE = 1024 * 1024
_BLOCK = tarfile.BLOCKSIZE
#: Files have no times, owners and modes of their own: they would change the bytes.
_MODE = 0o644


@dataclass(frozen=True)
class _Segment:
    """A stretch of the archive: bytes, or a whole file."""

    start: int
    length: int
    source: bytes | Path


class Archive:
    """The archive of a folder, with texts that are added to it."""

    def __init__(self, folder: Folder, *, extra: dict[str, str] | None = None) -> None:
        self._segments: list[_Segment] = []
        self.size_bytes = 0
        digest = hashlib.sha256()
        names = {file.name for file in folder.files}
        for name, text in (extra or {}).items():
            if name not in names:
                content = text.encode()
                self._add(name, content, len(content))
                digest.update(content)
        for file in folder.files:
            self._add(file.name, file.path, file.size_bytes)
            digest.update(f"{file.name}\0{file.size_bytes}\0{file.modified_ns}\n".encode())
        end = 2 * _BLOCK
        self._append(b"\0" * (end + -(self.size_bytes + end) % tarfile.RECORDSIZE))
        self.etag = f'"{digest.hexdigest()[:32]}"'

    def _add(self, name: str, source: bytes | Path, size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, _MODE
        self._append(info.tobuf(tarfile.PAX_FORMAT))
        if size:
            self._segments.append(_Segment(self.size_bytes, size, source))
            self.size_bytes += size
        self._append(b"\0" * (-size % _BLOCK))

    def _append(self, content: bytes) -> None:
        if content:
            self._segments.append(_Segment(self.size_bytes, len(content), content))
            self.size_bytes += len(content)

    def read(self, start: int, stop: int) -> Iterator[bytes]:
        """Read the bytes from ``start`` up to ``stop``. Raises ``OSError`` if a file has changed."""
        for segment in self._segments:
            first = max(start, segment.start) - segment.start
            last = min(stop, segment.start + segment.length) - segment.start
            if first < last:
                yield from _read(segment, first, last)


def _read(segment: _Segment, first: int, last: int) -> Iterator[bytes]:
    if isinstance(segment.source, bytes):
        yield segment.source[first:last]
        return
    with segment.source.open("rb") as file:
        file.seek(first)
        left = last - first
        while left:
            piece = file.read(min(_PIECE, left))
            if not piece:
                raise OSError(f"{segment.source.name} has become shorter while it was read")
            left -= len(piece)
            yield piece
