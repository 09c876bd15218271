"""Which kind of file something is, from its content first and its name second."""

from enum import StrEnum
from pathlib import PurePosixPath

from trellis_data.reading.problems import UnreadableFile

#: How much of a file is looked at.
HEAD_BYTES = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_MAGIC_ARROW_FILE = b"ARROW1"
#: An IPC stream begins with the continuation marker of its first message.
_MAGIC_ARROW_STREAM = b"\xff\xff\xff\xff"
_MAGIC_PARQUET = b"PAR1"
#: Things that people hand over by mistake, and what to do about them.
_FOREIGN = {
    b"BZh": "a bzip2 archive; unpack it first",
    b"\xfd7zXZ": "an xz archive; unpack it first",
    b"7z\xbc\xaf": "a 7-Zip archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
    b"FEA1": "a Feather file of version 1; save it as version 2 or as Parquet",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04": "a Python pickle, which is not read because reading it can run code",
    b"SQLite format 3": "an SQLite database",
}


class FileKind(StrEnum):
    """The kinds of files that rows are read from."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


TEXT_KINDS = frozenset({FileKind.JSONL, FileKind.JSON, FileKind.CSV})
BY_SUFFIX = {
    ".jsonl": FileKind.JSONL,
    ".ndjson": FileKind.JSONL,
    ".json": FileKind.JSON,
    ".csv": FileKind.CSV,
    ".tsv": FileKind.CSV,
    ".parquet": FileKind.PARQUET,
    ".arrow": FileKind.ARROW,
    ".feather": FileKind.ARROW,
    ".ipc": FileKind.ARROW,
}
PACKED_SUFFIXES = (".gz", ".zst", ".zip")


def can_be_read(filename: str) -> bool:
    """Return whether a file's name suggests that it contains rows; other files of a folder are ignored."""
    path = PurePosixPath(filename.lower())
    if path.suffix in PACKED_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix in BY_SUFFIX


def detect_kind(head: bytes, filename: str) -> FileKind:
    """Detect the kind of a file that begins with ``head`` (unpacked, and decoded if it is text).

    JSON Lines named ``.json``, an array named ``.jsonl`` and Parquet under any name are read
    for what they are. Raises UnreadableFile for anything else.
    """
    if not head.removeprefix(_BOM).strip():
        raise UnreadableFile("dataset_empty", "The file is empty.")
    if head.startswith(_MAGIC_PARQUET):
        return FileKind.PARQUET
    if head.startswith((_MAGIC_ARROW_FILE, _MAGIC_ARROW_STREAM)):
        return FileKind.ARROW
    for magic, description in _FOREIGN.items():
        if head.startswith(magic):
            raise UnreadableFile("unsupported_file_type", f"The file is {description}.")
    suffix = PurePosixPath(filename.lower()).suffix
    named = BY_SUFFIX.get(suffix)
    if named in {FileKind.PARQUET, FileKind.ARROW}:
        raise UnreadableFile("file_damaged", f"The file is named {suffix} but does not begin as one.")
    if named is FileKind.CSV:
        return FileKind.CSV
    first = head.removeprefix(_BOM).lstrip()[:1]
    if first == b"[":
        return FileKind.JSON
    if first == b"{":
        return FileKind.JSONL
    if named is not None:
        return named
    raise UnreadableFile(
        "unsupported_file_type",
        f"Files of type '{suffix or filename}' cannot be read; known are {', '.join(BY_SUFFIX)}.",
        supported=sorted(BY_SUFFIX),
    )
