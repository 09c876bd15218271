"""Which kind of file an upload is, from its content first and its name second."""

from enum import StrEnum
from pathlib import Path, PurePosixPath

from trellis_data.reading.problems import UnreadableFile

_HEAD_BYTES = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_PARQUET_MAGIC = b"PAR1"
#: Magic numbers of things people upload by mistake, and what to do about them.
_FOREIGN = {
    b"\x1f\x8b": "a gzip archive; unpack it first",
    b"PK\x03\x04": "a zip archive or an Excel workbook; unpack it, or save the sheet as CSV",
    b"\x28\xb5\x2f\xfd": "a zstd archive; unpack it first",
    b"BZh": "a bzip2 archive; unpack it first",
    b"ARROW1": "an Arrow IPC file; save it as Parquet",
    b"%PDF": "a PDF document",
}


class FileKind(StrEnum):
    """The file formats that can be uploaded."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


_BY_SUFFIX = {
    ".jsonl": FileKind.JSONL,
    ".ndjson": FileKind.JSONL,
    ".json": FileKind.JSON,
    ".csv": FileKind.CSV,
    ".tsv": FileKind.CSV,
    ".parquet": FileKind.PARQUET,
}


def detect_kind(path: Path, filename: str) -> FileKind:
    """The kind of the file at ``path`` that the client called ``filename``.

    JSON Lines named ``.json``, an array named ``.jsonl`` and Parquet under any name are read
    for what they are. Raises UnreadableFile for anything else.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.removeprefix(_BOM).strip():
        raise UnreadableFile("dataset_empty", "The file is empty.")
    if head.startswith(_PARQUET_MAGIC):
        return FileKind.PARQUET
    for magic, description in _FOREIGN.items():
        if head.startswith(magic):
            raise UnreadableFile("unsupported_file_type", f"The file is {description}.")
    suffix = PurePosixPath(filename.lower()).suffix
    named = _BY_SUFFIX.get(suffix)
    if named is FileKind.PARQUET:
        raise UnreadableFile(
            "file_damaged", "The file is named .parquet but does not begin as a Parquet file."
        )
    if named is FileKind.CSV:
        return FileKind.CSV
    first = head.removeprefix(_BOM).lstrip()[:1]
    if first == b"[" and named in {FileKind.JSON, FileKind.JSONL, None}:
        return FileKind.JSON
    if first == b"{" and named in {FileKind.JSON, FileKind.JSONL, None}:
        return FileKind.JSONL
    if named is not None:
        return named
    raise UnreadableFile(
        "unsupported_file_type",
        f"Files of type '{suffix or filename}' cannot be read; upload .jsonl, .json, .csv or .parquet.",
        supported=sorted(_BY_SUFFIX),
    )
