"""Files that are broken or meant to do harm: a clear error or quarantine, in bounded memory.

Each import runs in a process of its own, whose memory is measured.
"""

import gzip
import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from trellis_data.reading.importing import import_rows
from trellis_data.reading.problems import UnreadableFile
from trellis_data.reading.sources import LocalSource
from trellis_testing.measured_import import measure_import

MEBIBYTE = 1024 * 1024
#: Characters of a text that a few bytes repeat.
LONG_TEXT = 256 * 1024
#: Beside what an import of ten rows takes.
MAX_MORE_BYTES = 350 * MEBIBYTE
_IMPORT = """
import sys
from pathlib import Path
from trellis_data.reading.importing import import_rows
from trellis_data.reading.sources import LocalSource
import_rows(LocalSource(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def run(path: Path) -> dict[str, Any]:
    """What an import of the file comes to, and its largest memory."""
    return measure_import(path, path.parent / "out")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The memory of an import of ten rows."""
    path = tmp_path_factory.mktemp("base") / "rows.jsonl"
    path.write_bytes(good_lines(10))
    peak: int = run(path)["peak"]
    return peak


@pytest.fixture
def outcome(tmp_path: Path, base: int) -> Callable[[str, bytes | Iterator[bytes]], dict[str, Any]]:
    def measured(filename: str, content: bytes | Iterator[bytes]) -> dict[str, Any]:
        path = tmp_path / filename
        with path.open("wb") as file:
            for part in [content] if isinstance(content, bytes) else content:
                file.write(part)
        made = run(path)
        assert made.pop("peak") - base < MAX_MORE_BYTES
        if "code" in made:
            assert [each.name for each in tmp_path.iterdir()] == [filename]
        return made

    return measured


def good_lines(count: int) -> bytes:
    return b"".join(b'{"id": %d, "text": "row %d"}\n' % (n, n) for n in range(count))


def test_a_truncated_gzip_gives_the_rows_before_its_end(outcome: Any) -> None:
    packed = gzip.compress(os.urandom(3000).hex().encode().join([good_lines(50_000), b"\n"]))

    made = outcome("rows.jsonl.gz", packed[:-2000])

    assert made["rows"] == 50_000
    assert made["warnings"] == ["file_truncated"]


def test_a_truncated_zstd_says_so(outcome: Any) -> None:
    packed = zstandard.compress(good_lines(200_000))

    made = outcome("rows.jsonl.zst", packed[: len(packed) // 2])

    assert made["warnings"] == ["file_truncated"]
    assert made["rows"] > 50_000


def test_lines_in_another_encoding_are_quarantined(outcome: Any) -> None:
    chinese = '{"id": 1, "text": "今天天气很好"}\n'.encode()
    foreign = [
        '{"id": 2, "text": "今天天气很好"}\n'.encode("gb18030"),
        '{"id": 3, "text": "é"}\n'.encode("latin-1"),
    ]

    made = outcome("rows.jsonl", chinese * 1000 + foreign[0] + chinese * 1000 + foreign[1])

    assert made == {"rows": 2000, "quarantined": 2, "reasons": {"bad_encoding": 2}}


def test_a_line_of_fifty_megabytes_is_quarantined(outcome: Any) -> None:
    def content() -> Iterator[bytes]:
        yield good_lines(100)
        yield b'{"id": 1, "text": "'
        for _ in range(50):
            yield b"x" * MEBIBYTE
        yield b'"}\n'
        yield good_lines(100)

    assert outcome("rows.jsonl", content()) == {"rows": 200, "quarantined": 1, "reasons": {"too_long": 1}}


@pytest.mark.parametrize(
    ("filename", "content", "reasons"),
    [
        ("rows.jsonl", good_lines(50) + b'{"id": 1, "text": "a\x00b"}\n' + b"\x00\n", {"not_json": 2}),
        ("rows.csv", b"id,text\n1,a\n2,b\x00c\n3,d\n", {"nul_byte": 1}),
        ("rows.jsonl", good_lines(9) + b'{"id": 1, "id": 2, "text": "a"}\n', {"duplicate_key": 1}),
        ("rows.jsonl", good_lines(9) + b'{"text": {"a": 1, "\\u0061": 2}}\n', {"duplicate_key": 1}),
        ("rows.json", b'[{"id": 1}, {"id": 2, "id": 3}, {"id": 4}]', {"duplicate_key": 1}),
        (
            "rows.jsonl",
            good_lines(9) + b'{"x": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}\n",
            {"too_deep": 1},
        ),
        (
            "rows.jsonl",
            good_lines(9) + b'{"x": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}\n",
            {"too_deep": 1},
        ),
        ("rows.json", b'[{"id": 1},\n{"id": ' + b"[" * 500_000 + b',\n{"id": 2}]', {"too_deep": 1}),
    ],
    ids=[
        "nul-json",
        "nul-csv",
        "twice",
        "twice-escaped",
        "twice-array",
        "deep",
        "deep-objects",
        "deep-array",
    ],
)
def test_bad_rows_are_quarantined(
    filename: str, content: bytes, reasons: dict[str, int], outcome: Any
) -> None:
    made = outcome(filename, content)

    assert made["reasons"] == reasons
    assert made["rows"] > 1


def test_a_quotation_mark_that_is_never_closed_costs_one_line(outcome: Any) -> None:
    def content() -> Iterator[bytes]:
        yield b'id,text\n1,a\n2,"never closed\n'
        for _ in range(30):
            yield b"3,b\n" * 10_000

    made = outcome("rows.csv", content())

    assert made == {"rows": 300_001, "quarantined": 1, "reasons": {"not_csv": 1}}


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".zip"])
def test_a_bomb_is_refused(suffix: str, outcome: Any) -> None:
    rows = b'{"id": 1, "text": "aaaaaaaaa"}\n' * (2 * MEBIBYTE)
    output = io.BytesIO()
    if suffix == ".gz":
        with gzip.open(output, "wb", compresslevel=9) as file:
            for _ in range(8):
                file.write(rows)
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(output, closefd=False) as file:
            for _ in range(8):
                file.write(rows)
    else:
        with (
            zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("a.jsonl", "w") as file,
        ):
            for _ in range(8):
                file.write(rows)

    assert outcome(f"rows.jsonl{suffix}", output.getvalue())["code"] == "archive_bomb"


def _repeated_text(rows: int) -> pa.DictionaryArray:
    """Build the same long text in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["a" * LONG_TEXT])


def _arrow_of(array: pa.Array, **options: Any) -> bytes:
    output = io.BytesIO()
    schema = pa.schema([("text", array.type)])
    with pa.ipc.new_file(output, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write(pa.record_batch([array], schema))
    return output.getvalue()


def _parquet_of(array: pa.Array) -> bytes:
    output = io.BytesIO()
    pq.write_table(pa.table({"text": array}), output, compression="zstd", store_schema=False)
    return output.getvalue()


def _views_of_one_text(rows: int) -> pa.Array:
    """Build texts that are all the same piece of memory."""
    # A view: length, first four bytes, number of the buffer, place in it.
    view = struct.pack("<i4sii", LONG_TEXT, b"aaaa", 0, 0)
    buffers = [None, pa.py_buffer(view * rows), pa.py_buffer(b"a" * LONG_TEXT)]
    return pa.Array.from_buffers(pa.string_view(), rows, buffers)


@pytest.mark.parametrize(
    ("filename", "make"),
    [
        ("rows.parquet", lambda: _parquet_of(_repeated_text(200_000))),
        ("rows.arrow", lambda: _arrow_of(_repeated_text(200_000))),
        ("rows.arrow", lambda: _arrow_of(_views_of_one_text(200_000))),
        ("rows.arrow", lambda: _arrow_of(pa.nulls(2**28))),
    ],
    ids=["parquet-dictionary", "arrow-dictionary", "arrow-views", "arrow-nulls"],
)
def test_a_bomb_of_typed_columns_is_refused(filename: str, make: Callable[[], bytes], outcome: Any) -> None:
    content = make()

    assert len(content) < 16 * MEBIBYTE
    assert outcome(filename, content)["code"] == "archive_bomb"


def test_a_long_text_that_is_the_same_in_every_row_is_no_bomb(outcome: Any) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), ["a" * 10_000])

    assert outcome("rows.parquet", _parquet_of(text)) == {"rows": 20_000, "quarantined": 0, "reasons": {}}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["../../etc/cron.d/rows.jsonl"], "archive_unsafe"),
        (["/etc/rows.jsonl"], "archive_unsafe"),
        (["a\\..\\..\\rows.jsonl"], "archive_unsafe"),
        (["a.jsonl", "b.jsonl"], "archive_many_files"),
        ([], "archive_many_files"),
    ],
)
def test_a_zip_with_unsafe_names_or_many_files_is_refused(names: list[str], code: str, outcome: Any) -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name in names:
            archive.writestr(name, good_lines(1))

    assert outcome("rows.zip", output.getvalue())["code"] == code


def test_a_row_with_a_million_keys_is_quarantined(outcome: Any) -> None:
    row = json.dumps(dict.fromkeys(map(str, range(1_000_000)), 1), separators=(",", ":")).encode()

    made = outcome("rows.jsonl", good_lines(5) + row + b"\n" + good_lines(5))

    assert made == {"rows": 10, "quarantined": 1, "reasons": {"too_many_columns": 1}}


def test_rows_whose_keys_are_data_do_not_become_columns_without_end(outcome: Any) -> None:
    rows = b"".join(b'{"id": 1, "k%d": 1}\n' % n for n in range(2100))

    made = outcome("rows.jsonl", rows)

    assert made["rows"] + made["quarantined"] == 2100
    assert made["rows"] == 2047


@pytest.mark.parametrize(
    ("filename", "content", "code"),
    [
        ("rows.csv", ",".join(f"c{n}" for n in range(1_000_000)).encode() + b"\n", "too_many_columns"),
        ("rows.jsonl", b"", "dataset_empty"),
        ("rows.jsonl.gz", gzip.compress(b""), "dataset_empty"),
        ("rows.csv", b"id,text\n", "dataset_empty"),
        ("rows.json", b"[]", "dataset_empty"),
        ("rows.jsonl", b"{}\n{}\n", "dataset_empty"),
        ("rows.parquet", b"PAR1" + b"\x00" * 100 + b"PAR1", "file_damaged"),
        ("rows.arrow", b"ARROW1\x00\x00" + b"\x07" * 100, "file_damaged"),
        ("rows.jsonl", bytes(range(256)) * 400, "not_text"),
    ],
    ids=[
        "columns",
        "empty",
        "empty-gzip",
        "header",
        "empty-array",
        "empty-rows",
        "parquet",
        "arrow",
        "binary",
    ],
)
def test_a_file_without_rows_is_refused(filename: str, content: bytes, code: str, outcome: Any) -> None:
    assert outcome(filename, content)["code"] == code


@pytest.mark.faults
def test_a_killed_import_leaves_nothing_to_see_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    path, destination = tmp_path / "rows.jsonl", tmp_path / "out"
    path.write_bytes(good_lines(600_000))
    process = subprocess.Popen([sys.executable, "-c", _IMPORT, str(path), str(destination)])
    draft = tmp_path / ".out.importing"
    deadline = time.monotonic() + 120
    while not list(draft.glob("part-*.parquet")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert not destination.exists()
    assert all(pq.read_metadata(part).num_rows == 50_000 for part in draft.glob("part-*.parquet"))

    report = import_rows(LocalSource(path), destination)

    assert report.rows == 600_000
    assert not draft.exists()


@pytest.mark.slow
def test_memory_stays_flat_whatever_the_size_of_a_file(tmp_path: Path) -> None:
    line = json.dumps({"question": "q" * 700, "answer": "a" * 700}).encode() + b"\n"
    peaks = []
    for count in (100_000, 300_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        with (folder / "rows.jsonl").open("wb") as file:
            for _ in range(count // 1000):
                file.write(line * 1000)
        made = run(folder / "rows.jsonl")
        assert made["rows"] == count
        peaks.append(made["peak"])

    assert peaks[1] < peaks[0] + 80 * MEBIBYTE


def test_an_unreadable_file_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"{nothing\n")

    with pytest.raises(UnreadableFile):
        import_rows(LocalSource(tmp_path / "rows.jsonl"), tmp_path / "out")

    assert [each.name for each in tmp_path.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize("nested", ["[" * 300 + "]" * 300, '{"x":' * 300 + "1" + "}" * 300])
def test_a_line_that_is_nested_too_deeply_is_refused_alone(nested: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"a": 1}}\n{{"b": {nested}}}\n{{"a": 2}}\n')

    report = import_rows(LocalSource(path), tmp_path / "out")

    assert (report.rows, report.quarantined) == (2, 1)
    assert report.problems[0]["line"] == 2
