"""Unpacks archives that strangers send: no links, no paths that leave, bounds on size and count."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from trellis_recipes.workflows.package import BadPackage, check_size, is_ignored

_CHUNK_BYTES = 1024 * 1024
_MAX_PATH = 240
_HEADERS = frozenset(
    (
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    )
)
_MAX_HEADER_BYTES = 64 * 1024
#: Two thousand files with the longest names that are taken need a fraction of it.
_MAX_DIRECTORY_BYTES = 2 * 1024 * 1024
#: The end of a zip's directory and the longest comment behind it.
_ZIP_TAIL_BYTES = 22 + 65535
#: What reading a damaged archive raises.
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    NotImplementedError,
)
#: Opens the content of a member.
Opener = Callable[[], IO[bytes] | None]


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of a zip or tar archive into a folder that does not exist yet.

    A single folder at the top is left out, as most archives have one. ``BadPackage`` leaves nothing behind.
    """
    folder.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            _check_directory(archive)
            with zipfile.ZipFile(archive) as opened:
                _write_all(_list_zip(opened), folder)
        else:
            with _open_tar(archive) as opened_tar:
                _write_all(_list_tar(opened_tar), folder)
        _lift_single_folder(folder)
    except _DAMAGED as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise BadPackage(f"The archive cannot be read: {error}.") from error
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        if error.errno is not None:
            raise
        # bz2 and gzip tell of damage in this way, without the number of an error of the system.
        raise BadPackage(f"The archive cannot be read: {error}.") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _BoundedInfo(tarfile.TarInfo):
    """A member whose long names and further headers are small: tarfile reads them into memory whole."""

    def _proc_member(self, tarfile_: tarfile.TarFile) -> Any:
        if self.type in _HEADERS and self.size > _MAX_HEADER_BYTES:
            raise BadPackage("A header of the archive is too large.")
        return super()._proc_member(tarfile_)  # type: ignore[misc]


def _open_tar(archive: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(archive, tarinfo=_BoundedInfo)
    except tarfile.ReadError:
        raise BadPackage("The file is neither a zip nor a tar archive.") from None


def _check_directory(archive: Path) -> None:
    """Look at the size of a zip's list of files, which zipfile reads into memory whole."""
    with archive.open("rb") as file:
        file.seek(max(0, archive.stat().st_size - _ZIP_TAIL_BYTES))
        tail = file.read()
    # End of central directory: its size is at offset 12. ZIP64 writes 0xffffffff there.
    at = tail.rfind(b"PK\x05\x06")
    if at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > _MAX_DIRECTORY_BYTES:
        raise BadPackage("The archive lists too many files.")


def _list_zip(opened: zipfile.ZipFile) -> Iterator[tuple[str, Opener]]:
    for member in opened.infolist():
        if member.is_dir():
            continue
        # The upper half of the attributes is the mode of Unix, where an archive has one.
        kind = (member.external_attr >> 16) & 0o170000
        if kind not in (0, 0o100000):
            raise BadPackage(f"'{member.filename[:200]}' is a link or no plain file; those are not unpacked.")
        yield member.filename, lambda member=member: opened.open(member)  # type: ignore[misc]


def _list_tar(opened: tarfile.TarFile) -> Iterator[tuple[str, Opener]]:
    total = 0
    for count, member in enumerate(opened, start=1):
        # Also of what is left out: to skip it is to unpack it.
        total += member.size
        check_size(count // 2, total)
        if member.isdir():
            continue
        if not member.isreg():
            raise BadPackage(f"'{member.name[:200]}' is a link or no plain file; those are not unpacked.")
        yield member.name, lambda member=member: opened.extractfile(member)  # type: ignore[misc]
    # To its end, where gzip has the checksum of the whole; tarfile stops before it.
    while opened.fileobj is not None and (rest := opened.fileobj.read(_CHUNK_BYTES)):
        total += len(rest)
        check_size(0, total)


def _write_all(members: Iterator[tuple[str, Opener]], folder: Path) -> None:
    """Write the archive's members, counting actual bytes because a member's stated size is not trusted."""
    seen: set[str] = set()
    total = 0
    for name, open_member in members:
        path = _check_path(name)
        if is_ignored(path):
            continue
        if path.as_posix() in seen:
            raise BadPackage(f"'{name[:200]}' stands twice in the archive.")
        seen.add(path.as_posix())
        check_size(len(seen), total)
        total = _write(open_member, folder / path, total, len(seen))


def _check_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    is_plain = name.isprintable() and len(name) <= _MAX_PATH and ":" not in name
    if not is_plain or path.is_absolute() or ".." in path.parts or not path.parts:
        raise BadPackage(f"'{name[:200]!r}' is no path within the package.")
    return path


def _write(open_member: Opener, target: Path, total: int, count: int) -> int:
    """Write a member to ``target`` and return the total number of bytes written so far."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as output:
            source = open_member()
            if source is None:
                raise BadPackage(f"'{target.name[:200]}' cannot be read.")
            with source:
                while chunk := source.read(_CHUNK_BYTES):
                    total += len(chunk)
                    check_size(count, total)
                    output.write(chunk)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise BadPackage(f"'{target.name[:200]}' is a file and a folder at once.") from None
    return total


def _lift_single_folder(folder: Path) -> None:
    entries = list(folder.iterdir())
    if len(entries) != 1 or not entries[0].is_dir():
        return
    # Under a name that nothing within can have.
    inner = entries[0].rename(folder / "..lifted")
    for each in list(inner.iterdir()):
        each.rename(folder / each.name)
    inner.rmdir()
