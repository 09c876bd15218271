"""Rows of any source as Parquet shards with one schema; what cannot be read lies in a quarantine file."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field
from trellis_contracts.recipe import Strict

from trellis_data.reading.blocks import Block, gather
from trellis_data.reading.column_types import ColumnTypes, ShapeError, describe_type
from trellis_data.reading.conform import has_huge_numbers
from trellis_data.reading.csv_rows import read_csv
from trellis_data.reading.encoding import as_utf8, detect_encoding
from trellis_data.reading.json_array import read_json_array
from trellis_data.reading.json_lines import read_json_lines
from trellis_data.reading.kinds import HEAD_BYTES, TEXT_KINDS, FileKind, detect_kind
from trellis_data.reading.mixing import Mixed
from trellis_data.reading.packing import Unpacked, open_unpacked
from trellis_data.reading.problems import RowProblem, UnreadableFile, shorten
from trellis_data.reading.quarantine import QUARANTINE_FILE, Quarantine, Warnings
from trellis_data.reading.shards import Origin, ShardWriter
from trellis_data.reading.sources import Source, SourceFile
from trellis_data.reading.typed import read_typed

REPORT_FILE = "import.json"


class Progress(Strict):
    """How far an import has come."""

    file: str
    files_done: int
    file_count: int
    rows: int
    quarantined: int


class FileReport(Strict):
    """What was read from one file."""

    name: str
    kind: FileKind
    packing: str | None
    encoding: str | None
    #: How sure the encoding is, 0 to 1, and why.
    encoding_confidence: float | None
    encoding_reason: str | None
    rows: int
    quarantined: int
    #: Why the file was not read to its end; its rows before that place were.
    damage: str | None = None


class ImportReport(Strict):
    """What an import took and what it did not."""

    rows: int
    quarantined: int
    #: Quarantined rows by reason code, and the first of them.
    reasons: dict[str, int]
    problems: list[dict[str, Any]]
    #: What is wrong with files though no row was lost by it: ``source``, ``code``, ``message``, the first
    #: ``line`` and the ``count``. With them, ``rows`` and ``quarantined`` are all rows that a file has.
    warnings: list[dict[str, Any]] = Field(default_factory=list)
    files: list[FileReport]
    shards: list[str]
    columns: list[dict[str, str]]
    size_bytes: int
    #: What a hub calls the exact state that was read; None where a source has no such name.
    revision: str | None = None
    seconds: float = Field(default=0.0)


class ImportCancelled(Exception):
    """Somebody no longer wants the import; nothing of it is left."""


@dataclass(frozen=True)
class _Run:
    types: ColumnTypes
    writer: ShardWriter
    quarantine: Quarantine
    warnings: Warnings
    tick: Callable[[str, int], None]


def import_rows(
    source: Source,
    destination: Path,
    *,
    mixed: Mixed = "quarantine",
    progress: Callable[[Progress], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> ImportReport:
    """Read ``source`` into the folder ``destination``, which must not exist yet.

    Of a column that mixes numbers, truth values and texts the first kind counts and the other rows go to
    quarantine; with ``mixed`` "text" the column becomes text.

    The folder is made in a draft beside it and appears under its name when it is complete, never before: a
    run that was killed leaves the draft, and the next one starts clean. One import at a time goes to one
    destination. Raises UnreadableFile where no row can be taken or a file as a whole cannot, and
    ImportCancelled.
    """
    if destination.exists():
        raise FileExistsError(f"{destination} already exists.")
    draft = destination.with_name(f".{destination.name}.importing")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(parents=True)
    try:
        report = _import(source, draft, ColumnTypes(mixed), progress, is_cancelled)
        (draft / REPORT_FILE).write_text(report.model_dump_json(indent=2))
        draft.rename(destination)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return report


def _import(
    source: Source,
    draft: Path,
    types: ColumnTypes,
    progress: Callable[[Progress], None] | None,
    is_cancelled: Callable[[], bool] | None,
) -> ImportReport:
    began = time.monotonic()
    files = source.list_files()
    if not files:
        raise UnreadableFile("no_files", f"{source.describe()} contains no readable file.")
    reports = list[FileReport]()
    with Quarantine(draft / QUARANTINE_FILE) as quarantine, tempfile.TemporaryDirectory(dir=draft) as work:
        writer = ShardWriter(draft, types, quarantine)

        def tick(name: str, rows: int) -> None:
            if is_cancelled is not None and is_cancelled():
                raise ImportCancelled(f"The import of {source.describe()} was cancelled.")
            if progress is not None:
                taken = rows + sum(report.rows for report in reports)
                state = Progress(
                    file=name,
                    files_done=len(reports),
                    file_count=len(files),
                    rows=taken,
                    quarantined=quarantine.count,
                )
                progress(state)

        run = _Run(types, writer, quarantine, warnings := Warnings(), tick)
        for file in files:
            tick(file.name, 0)
            path = source.bring(file, Path(work))
            reports.append(_read_file(path, file, Path(work), run))
            if not path.is_relative_to(work):
                continue
            path.unlink()
        shards = writer.finish()
        row_count = sum(shard.row_count for shard in shards)
        if not row_count or not types.struct.num_fields:
            raise _nothing_taken(source, quarantine, warnings)
    return ImportReport(
        rows=row_count,
        quarantined=quarantine.count,
        reasons=dict(quarantine.reasons),
        problems=quarantine.first,
        warnings=warnings.all,
        files=reports,
        shards=[shard.path.name for shard in shards],
        columns=[{"name": field.name, "type": describe_type(field.type)} for field in types.struct],
        size_bytes=sum(shard.path.stat().st_size for shard in shards),
        revision=source.revision,
        seconds=round(time.monotonic() - began, 3),
    )


def _nothing_taken(source: Source, quarantine: Quarantine, warnings: Warnings) -> UnreadableFile:
    if not quarantine.count and (found := warnings.all):
        message = f"{found[0]['source']} has no rows with values: {found[0]['message']}."
        return UnreadableFile("no_row_readable", message, problems=found)
    if not quarantine.count:
        return UnreadableFile("dataset_empty", f"{source.describe()} has no rows with values.")
    first = quarantine.first[0]
    place = f"line {first['line']}" if first["line"] else f"row {first['row']}"
    message = f"None of the {quarantine.count} rows of {source.describe()} can be read; {place}: "
    return UnreadableFile("no_row_readable", f"{message}{first['message']}.", problems=quarantine.first)


def _read_file(path: Path, file: SourceFile, work: Path, run: _Run) -> FileReport:
    unpacked = open_unpacked(path, Path(file.name).name)
    with unpacked.open() as stream:
        head = stream.read(HEAD_BYTES)
    before = run.quarantine.count
    encoding = None
    if _is_binary(head, unpacked.name):
        kind = detect_kind(head, unpacked.name)
        rows = _take_typed(path, kind, unpacked, file, work, run)
    else:
        encoding = detect_encoding(unpacked.open)

        def open_text() -> Any:
            return as_utf8(unpacked.open(), encoding.name)

        with open_text() as stream:
            kind = detect_kind(stream.read(HEAD_BYTES), unpacked.name)
        rows = _take_blocks(_blocks_of(kind, open_text), file, run)
    if unpacked.damage:
        # How many rows are missing nobody knows, so that it is none of the rows that are counted.
        damage = RowProblem(None, rows + 1, unpacked.damage, code="file_truncated", is_row=False)
        run.warnings.add(file.name, damage)
    return FileReport(
        name=file.name,
        kind=kind,
        packing=unpacked.packing,
        encoding=encoding.name if encoding else None,
        encoding_confidence=encoding.confidence if encoding else None,
        encoding_reason=encoding.reason if encoding else None,
        rows=rows,
        quarantined=run.quarantine.count - before,
        damage=unpacked.damage,
    )


def _is_binary(head: bytes, name: str) -> bool:
    """Return whether the file is binary; the detection of the encoding rejects what is neither."""
    try:
        return detect_kind(head, name) not in TEXT_KINDS
    except UnreadableFile:
        if Path(name).suffix.lower() in (".parquet", ".arrow", ".feather", ".ipc"):
            return True
        if head.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in head:
            return False  # UTF-16 and UTF-32 look like nothing before they are decoded
        raise


def _blocks_of(kind: FileKind, open_text: Callable[[], Any]) -> Iterator[Block]:
    if kind is FileKind.JSONL:
        return read_json_lines(open_text())
    if kind is FileKind.JSON:
        return gather(read_json_array(open_text()))
    return gather(read_csv(open_text))


def _take_blocks(blocks: Iterator[Block], file: SourceFile, run: _Run) -> int:
    """Write the rows of a text file; how many were taken."""
    taken = 0
    for block in blocks:
        for problem in block.problems:
            run.quarantine.add(file.name, problem)
        for warning in block.warnings:
            run.warnings.add(file.name, warning)
        taken += _take_block(block, file, run)
        run.tick(file.name, taken)
    return taken


def _take_block(block: Block, file: SourceFile, run: _Run) -> int:
    before = run.types.struct
    if block.read_exactly and run.types.texts:
        block = block.read_exactly()  # a number that becomes a text is written with all of its digits
    pieces, misfits = run.types.admit(block.rows)
    is_rounded = run.types.texts or any(has_huge_numbers(piece.array) for piece in pieces)
    if block.read_exactly and is_rounded:
        run.types.struct = before
        block = block.read_exactly()
        pieces, misfits = run.types.admit(block.rows)
    numbers = _numbers_of(block)
    if not misfits and len(pieces) == 1:
        places = [numbers]
    else:
        by_row = {id(row): number for row, number in zip(block.rows, numbers, strict=True)}
        places = [[by_row[id(row)] for row in piece.rows] for piece in pieces]
        for row, column, reason, code in misfits:
            raw = shorten(str(row.value)[:8000])
            problem = RowProblem(row.line, by_row[id(row)], reason, column, code=code, raw=raw)
            run.quarantine.add(file.name, problem)
    for piece, where in zip(pieces, places, strict=True):
        lines = np.array([row.line for row in piece.rows], np.int64)
        run.writer.add(piece.array, Origin(file.name, lines, np.array(where, np.int64)))
    return sum(len(piece.rows) for piece in pieces)


def _numbers_of(block: Block) -> list[int]:
    """Return the row numbers of a block's good rows."""
    bad = {problem.row for problem in block.problems}
    every = range(block.first_row, block.first_row + block.row_count)
    return [number for number in every if number not in bad] if bad else list(every)


def _take_typed(
    path: Path, kind: FileKind, unpacked: Unpacked, file: SourceFile, work: Path, run: _Run
) -> int:
    """Write the rows of a file whose columns have types; how many were taken."""
    is_copy = unpacked.packing is not None
    if is_copy:
        # Readers of these kinds jump about in the file.
        path = work / f"unpacked.{kind}"
        with unpacked.open() as stream, path.open("wb") as copy:
            shutil.copyfileobj(stream, copy, 1024 * 1024)
    taken = 0
    try:
        for first, array, problems in read_typed(path, kind):
            for problem in problems:
                run.quarantine.add(file.name, problem)
            bad = {problem.row for problem in problems}
            total = len(array) + len(problems)
            places = np.array([n for n in range(first, first + total) if n not in bad], np.int64)
            try:
                run.types.admit_type(array.type)
            except (ShapeError, pa.ArrowTypeError, pa.ArrowInvalid) as error:
                raise UnreadableFile(
                    "types_disagree", f"The columns of {file.name} do not agree with those before: {error}"
                ) from error
            run.writer.add(array, Origin(file.name, None, places))
            taken += len(array)
            run.tick(file.name, taken)
    finally:
        if is_copy:
            path.unlink(missing_ok=True)
    return taken
