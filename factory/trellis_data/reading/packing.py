"""Files as they lie and files in gzip, zstd or a zip with one member, all as a stream of bytes."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import pyarrow as pa

from trellis_data.reading.problems import UnreadableFile

_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
#: An archive is a bomb when it unpacks to more than this many times its size (text: 5 to 30 times) ...
_MAX_RATIO = 200
#: ... and to more than this.
_HARMLESS_BYTES = 256 * 1024 * 1024
#: What a reader loses at most of what comes before the damage in an archive.
_STEP_BYTES = 16 * 1024
_DAMAGE = (EOFError, OSError, zlib.error, pa.ArrowException, zipfile.BadZipFile, NotImplementedError)


@dataclass
class Unpacked:
    """A file whose bytes can be read from the start any number of times."""

    #: The name without the archive's suffix.
    name: str
    packing: str | None
    open: Callable[[], BinaryIO]
    #: Why the last reading ended before the end; None where it did not.
    damage: str | None = None


def open_unpacked(path: Path, filename: str) -> Unpacked:
    """Open the content of a file. Raise UnreadableFile for an archive that does not contain one file."""
    with path.open("rb") as file:
        head = file.read(4)
    if head in (_ZIP, _EMPTY_ZIP):
        return _open_zip(path)
    if head.startswith(_GZIP):
        return _guard(path, _without(filename, ".gz"), "gzip", lambda: cast(BinaryIO, gzip.open(path)))
    if head == _ZSTD:
        return _guard(path, _without(filename, ".zst"), "zstd", lambda: _open_zstd(path))
    return Unpacked(filename, None, lambda: path.open("rb"))


def _without(filename: str, suffix: str) -> str:
    return filename[: -len(suffix)] if filename.lower().endswith(suffix) else filename


def _open_zstd(path: Path) -> BinaryIO:
    # Arrow's reader says where a stream is cut off, zstandard's takes that for its end.
    return cast(BinaryIO, pa.input_stream(str(path), compression="zstd", buffer_size=0))


def _open_zip(path: Path) -> Unpacked:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [item for item in archive.infolist() if not item.is_dir()]
    except _DAMAGE as error:
        raise UnreadableFile("file_damaged", f"The zip archive cannot be read: {error}.") from error
    members = [item for item in members if not item.filename.startswith("__MACOSX/")]
    for item in members:
        # Nothing is ever written under these names; an archive that has one was made to do harm.
        if (
            item.filename.startswith(("/", "\\"))
            or ".." in PurePosixPath(item.filename.replace("\\", "/")).parts
        ):
            raise UnreadableFile(
                "archive_unsafe",
                f"The zip archive holds the path {item.filename[:100]!r}, which leaves its folder.",
            )
    if len(members) != 1:
        raise UnreadableFile(
            "archive_many_files",
            f"The zip archive holds {len(members)} files; pack one alone, or import the unpacked folder.",
        )
    (member,) = members
    if member.flag_bits & 1:
        raise UnreadableFile("archive_encrypted", "The zip archive is encrypted; unpack it first.")
    return _guard(
        path, PurePosixPath(member.filename).name, "zip", lambda: _open_member(path, member.filename)
    )


def _open_member(path: Path, name: str) -> BinaryIO:
    with zipfile.ZipFile(path) as archive:
        # The member keeps the file open on its own.
        return cast(BinaryIO, archive.open(name))


def _guard(path: Path, name: str, packing: str, open_stream: Callable[[], BinaryIO]) -> Unpacked:
    unpacked = Unpacked(name, packing, lambda: cast(BinaryIO, None))
    size = path.stat().st_size

    def open_guarded() -> BinaryIO:
        unpacked.damage = None
        raw = _Guarded(unpacked, open_stream(), size)
        return cast(BinaryIO, io.BufferedReader(raw, 1024 * 1024))

    unpacked.open = open_guarded
    return unpacked


class _Guarded(io.RawIOBase):
    """An archive's content up to where it is damaged, and no bomb's."""

    def __init__(self, unpacked: Unpacked, stream: BinaryIO, packed_bytes: int) -> None:
        super().__init__()
        self._unpacked = unpacked
        self._stream = stream
        # Reading on until a buffer is full would lose what came before the damage.
        at_once = isinstance(stream, gzip.GzipFile | zipfile.ZipExtFile)
        self._read = stream.read1 if at_once else stream.read  # type: ignore[attr-defined]
        self._limit = max(_HARMLESS_BYTES, packed_bytes * _MAX_RATIO)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]  # any writable buffer
        if self._unpacked.damage:
            return 0
        try:
            data = self._read(min(len(view), _STEP_BYTES))
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault
            self._unpacked.damage = f"the archive is damaged or cut off: {error}"
            return 0
        self._count += len(data)
        if self._count > self._limit:
            raise UnreadableFile(
                "archive_bomb",
                f"The archive unpacks to more than {self._limit // 2**20} MiB, over {_MAX_RATIO} times its "
                "size; unpack it yourself if that is meant.",
            )
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()
