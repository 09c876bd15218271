"""One uploaded file in, one checked Parquet file and its description out."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat
from trellis_data.reading.blocks import Block, SourceRow, gather
from trellis_data.reading.columns import describe_type
from trellis_data.reading.csv_rows import read_csv
from trellis_data.reading.encoding import as_utf8
from trellis_data.reading.json_array import read_json_array
from trellis_data.reading.json_lines import read_json_lines
from trellis_data.reading.problems import RowProblem

from trellis_api.core.hashing import hash_file
from trellis_api.datasets.intake.encoding import detect_encoding
from trellis_api.datasets.intake.formats import (
    BadValue,
    Detection,
    count_empty_values,
    detect_format,
    find_bad_values,
)
from trellis_api.datasets.intake.kinds import FileKind, detect_kind
from trellis_api.datasets.intake.problems import MAX_PROBLEMS, BadRows
from trellis_api.datasets.intake.store import Source, copy_parquet, write_rows


@dataclass(frozen=True)
class Converted:
    """A Parquet file that was written, and what it holds."""

    kind: FileKind
    encoding: str | None
    detection: Detection
    columns: list[dict[str, str]]
    warnings: list[dict[str, str | int | None]]
    row_count: int
    size_bytes: int
    sha256: str


def convert(path: Path, filename: str, destination: Path) -> Converted:
    """Check every row of ``path`` and write ``destination``. Raises UnreadableFile and BadRows."""
    kind = detect_kind(path, filename)
    encoding: str | None = None
    source: Source | None = None
    if kind is FileKind.PARQUET:
        schema = copy_parquet(path, destination)
    else:
        encoding = text_encoding = detect_encoding(path)

        def read() -> Iterator[SourceRow | RowProblem]:
            return _read_rows(path, kind, text_encoding)

        source = read
        schema = write_rows(source, destination)
    detection = detect_format(schema)
    if bad := find_bad_values(destination, detection):
        raise BadRows(_locate(bad, source), is_complete=len(bad) < MAX_PROBLEMS)
    return Converted(
        kind=kind,
        encoding=encoding,
        detection=detection,
        columns=[{"name": field.name, "type": describe_type(field.type)} for field in schema],
        warnings=_collect_warnings(destination, detection),
        row_count=pq.read_metadata(destination).num_rows,
        size_bytes=destination.stat().st_size,
        sha256=hash_file(destination),
    )


def _read_rows(path: Path, kind: FileKind, encoding: str) -> Iterator[SourceRow | RowProblem]:
    """The rows of a text file, and problems in the place of bad ones."""

    def open_text() -> BinaryIO:
        return as_utf8(path.open("rb"), encoding)

    if kind is FileKind.CSV:
        blocks: Iterator[Block] = gather(read_csv(open_text))
    elif kind is FileKind.JSON:
        blocks = gather(read_json_array(open_text()))
    else:
        blocks = read_json_lines(open_text(), exactly=True)
    for block in blocks:
        yield from block.in_order()


def _locate(bad: list[BadValue], source: Source | None) -> list[RowProblem]:
    """Give bad values their lines, by reading the source up to the last of them."""
    lines: dict[int, int] = {}
    if source is not None:
        wanted = {value.position for value in bad}
        for position, row in enumerate(islice(source(), max(wanted) + 1)):
            if position in wanted and isinstance(row, SourceRow):
                lines[position] = row.line
    return [
        RowProblem(lines.get(value.position), value.position + 1, value.reason, value.column) for value in bad
    ]


def _collect_warnings(path: Path, detection: Detection) -> list[dict[str, str | int | None]]:
    warnings: list[dict[str, str | int | None]] = []
    if detection.format is DataFormat.UNKNOWN:
        warnings.append(
            {"code": "format_unknown", "message": detection.reason, "column": None, "row_count": None}
        )
    for column, count in count_empty_values(path, detection).items():
        rows = "row has" if count == 1 else "rows have"
        message = f"{count} {rows} an empty '{column}'; training refuses such rows."
        warnings.append({"code": "empty_values", "message": message, "column": column, "row_count": count})
    return warnings
