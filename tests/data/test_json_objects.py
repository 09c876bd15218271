"""JSON lines of the platform's own files: what stands within a string ends no line."""

import gzip
import json
import os
from pathlib import Path

import pytest
from trellis_data.json_objects import BadLine, read_objects

#: Ends of lines to Python's ``str``, letters like others to JSON.
UNICODE_ENDS = "one\u2028two\u2029three\u0085four"


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_lines_end_at_line_feeds_alone(tmp_path: Path, name: str) -> None:
    rows = [{"text": UNICODE_ENDS}, {"text": "last"}]
    content = "\r\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    assert list(read_objects(path)) == rows


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"cut', "line 3 of rows.jsonl is not JSON"),
        (b'{"text": "\xff"}', "line 3 of rows.jsonl is not JSON"),
        (b"[" * 100_000, "line 3 of rows.jsonl is not JSON"),
        (b"[1]", "line 3 of rows.jsonl is not an object"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "good"}\n\n' + line + b"\n")
    rows = read_objects(path)

    assert next(rows) == {"text": "good"}
    with pytest.raises(BadLine, match=said):
        next(rows)


def test_a_file_that_is_not_there_is_no_bad_line(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read_objects(tmp_path / "nowhere.jsonl"))


@pytest.mark.parametrize("damage", [slice(0, -12), slice(0, 40)])
def test_a_truncated_file_is_named(tmp_path: Path, damage: slice) -> None:
    whole = gzip.compress(b'{"text": "good"}\n' * 9 + json.dumps({"t": os.urandom(99).hex()}).encode())
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(whole[damage])

    with pytest.raises(BadLine, match=r"rows.jsonl.gz is damaged or incomplete"):
        list(read_objects(path))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(json.dumps({"t": os.urandom(999).hex()}).encode()))
    whole[20:60] = b"\xff" * 40
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(whole)

    with pytest.raises(BadLine, match=r"rows.jsonl.gz is damaged or incomplete"):
        list(read_objects(path))
