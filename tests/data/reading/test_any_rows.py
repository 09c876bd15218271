"""Whatever the rows, each kind of file gives them back as they were."""

import csv
import gzip
import io
import json
import string
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.reading.importing import import_rows
from trellis_data.reading.sources import LocalSource

EXAMPLES = settings(max_examples=40, deadline=None)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(string.ascii_letters + string.digits + "_ .问", min_size=1, max_size=8)
WHOLE = st.integers(-(2**53), 2**53)
DECIMAL = st.floats(allow_nan=False, allow_infinity=False)
MESSAGES = st.lists(st.fixed_dictionaries({"role": TEXT, "content": st.none() | TEXT}), max_size=3)
LEAF = st.fixed_dictionaries({"a": WHOLE, "b": st.lists(TEXT, max_size=2)})
DEEP = st.lists(st.lists(LEAF, max_size=2), max_size=2)


@st.composite
def tables(draw: st.DrawFn, *kinds: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
    """Rows whose columns each have one type."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = {name: draw(st.sampled_from(kinds)) for name in names}
    return draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=6))


NESTED = tables(TEXT, WHOLE, DECIMAL, st.booleans(), MESSAGES, DEEP, st.none() | TEXT, st.none() | WHOLE)
FLAT = tables(TEXT, WHOLE, DECIMAL, st.booleans(), st.none() | TEXT)


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def zipped(content: bytes) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/rows.jsonl", content)
    return output.getvalue()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    output = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), output)
    return output.getvalue()


def arrow(rows: list[dict[str, Any]], *, is_stream: bool = False) -> bytes:
    table, output = pa.Table.from_pylist(rows), io.BytesIO()
    opened = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with opened(output, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return output.getvalue()


def feathered(rows: list[dict[str, Any]]) -> bytes:
    output = io.BytesIO()
    feather.write_feather(pa.Table.from_pylist(rows), output)
    return output.getvalue()


def read_back(content: bytes, filename: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, filename)
        path.write_bytes(content)
        report = import_rows(LocalSource(path), Path(folder, "out"))
        assert report.quarantined == 0
        return [row for name in report.shards for row in pq.read_table(Path(folder, "out", name)).to_pylist()]


WRITERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "rows.jsonl": lines,
    "windows.jsonl": lambda rows: lines(rows).replace(b"\n", b"\r\n\r\n"),
    "escaped.jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "marked.jsonl": lambda rows: b"\xef\xbb\xbf" + lines(rows),
    "wide.jsonl": lambda rows: lines(rows).decode().encode("utf-16"),
    "chinese.jsonl": lambda rows: lines(rows).decode().encode("utf-16-le").join([b"\xff\xfe", b""]),
    "rows.jsonl.gz": lambda rows: gzip.compress(lines(rows)),
    "rows.jsonl.zst": lambda rows: zstandard.compress(lines(rows)),
    "rows.zip": lambda rows: zipped(lines(rows)),
    "rows.json": lambda rows: json.dumps(rows).encode(),
    "indented.json": lambda rows: json.dumps(rows, ensure_ascii=False, indent=2).encode(),
    "rows.json.zst": lambda rows: zstandard.compress(json.dumps(rows).encode()),
    "rows.parquet": parquet,
    "rows.parquet.gz": lambda rows: gzip.compress(parquet(rows)),
    "rows.arrow": arrow,
    "stream.arrow": lambda rows: arrow(rows, is_stream=True),
    "rows.feather": feathered,
}


@pytest.mark.parametrize("filename", WRITERS)
@EXAMPLES
@given(rows=NESTED)
def test_any_rows_come_back_equal(filename: str, rows: list[dict[str, Any]]) -> None:
    assert read_back(WRITERS[filename](rows), filename) == rows


@EXAMPLES
@given(rows=FLAT, delimiter=st.sampled_from([",", "\t", ";"]))
def test_any_cells_of_a_csv_file_can_be_written_back_as_they_stood(
    rows: list[dict[str, Any]], delimiter: str
) -> None:
    rows = [{f"c{number}": value for number, value in enumerate([*row.values(), "end"])} for row in rows]
    written = [
        ["" if value is None else str(value).replace("\x00", "") for value in row.values()] for row in rows
    ]
    output = io.StringIO(newline="")
    writer = csv.writer(output, delimiter=delimiter)
    writer.writerows([list(rows[0]), *written])

    found = read_back(output.getvalue().encode(), "rows.csv")

    assert [["" if value is None else str(value) for value in row.values()] for row in found] == written


@EXAMPLES
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.integers(-(2**53), 2**53), min_size=1),
        min_size=1,
        max_size=8,
    )
)
def test_keys_that_come_and_go_are_nulls_where_they_are_not(rows: list[dict[str, int]]) -> None:
    found = read_back(lines(rows), "rows.jsonl")

    assert [{key: value for key, value in row.items() if value is not None} for row in found] == rows
