"""Uploaded files become typed rows, whatever their kind, encoding and size."""

import csv
import io
import json
import string
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trellis_api.datasets.intake.convert import Converted, convert
from trellis_api.datasets.intake.kinds import FileKind
from trellis_api.datasets.intake.store import read_page
from trellis_data.reading.problems import MAX_ROW_BYTES

ANY_EXAMPLES = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(string.ascii_letters + string.digits + "_ .问", min_size=1, max_size=8)
WHOLE = st.integers(-(2**53), 2**53)
DECIMAL = st.floats(allow_nan=False, allow_infinity=False)


def convert_bytes(folder: Path, content: bytes, filename: str) -> tuple[Converted, list[dict[str, Any]]]:
    source, destination = folder / "upload", folder / "data.parquet"
    source.write_bytes(content)
    converted = convert(source, filename, destination)
    return converted, read_page(destination, offset=0, limit=10**9)


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def columns_of(values: Callable[[], st.SearchStrategy[Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Tables whose columns each have one type; every cell may be null, but no column is all null."""

    @st.composite
    def table(draw: st.DrawFn) -> list[dict[str, Any]]:
        names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
        count = draw(st.integers(1, 6))
        kinds = [draw(values()) for _ in names]
        cells = [draw(st.lists(kind, min_size=count, max_size=count)) for kind in kinds]
        return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]

    return table()


def scalar_kinds() -> st.SearchStrategy[st.SearchStrategy[Any]]:
    return st.sampled_from([TEXT, WHOLE, DECIMAL, st.booleans()])


def nested_kinds() -> st.SearchStrategy[st.SearchStrategy[Any]]:
    messages = st.lists(st.fixed_dictionaries({"from": TEXT, "value": TEXT}), max_size=3)
    return st.sampled_from([TEXT, st.lists(WHOLE, max_size=3), messages, st.none() | TEXT, st.none() | WHOLE])


@ANY_EXAMPLES
@given(rows=columns_of(nested_kinds))
def test_any_table_comes_back_the_same_from_json_lines(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    converted, found = convert_bytes(tmp_path, json_lines(rows), "any.jsonl")

    assert found == rows
    assert converted.row_count == len(rows)
    assert [column["name"] for column in converted.columns] == list(rows[0])


@ANY_EXAMPLES
@given(rows=columns_of(nested_kinds), indent=st.sampled_from([None, 2]))
def test_any_table_comes_back_the_same_from_a_json_array(
    rows: list[dict[str, Any]], indent: int | None, tmp_path: Path
) -> None:
    content = json.dumps(rows, ensure_ascii=False, indent=indent).encode()

    converted, found = convert_bytes(tmp_path, content, "any.json")

    assert found == rows
    assert converted.kind is FileKind.JSON


@ANY_EXAMPLES
@given(rows=columns_of(scalar_kinds))
def test_any_table_comes_back_the_same_from_parquet(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    output = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), output)

    _, found = convert_bytes(tmp_path, output.getvalue(), "any.parquet")

    assert found == rows


@ANY_EXAMPLES
@given(
    cells=st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
            | WHOLE.map(str)
            | DECIMAL.map(repr),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_cells_of_a_csv_file_can_be_written_back_as_they_stood(
    cells: list[list[str]], tmp_path: Path
) -> None:
    output = io.StringIO(newline="")
    csv.writer(output).writerows([["a", "b", "c"], *cells])

    _, found = convert_bytes(tmp_path, output.getvalue().encode(), "any.csv")

    assert [["" if value is None else str(value) for value in row.values()] for row in found] == cells


def test_cells_that_a_number_would_change_stay_text(tmp_path: Path) -> None:
    content = b"code,price,count,share,mixed,flag\n007,0.50,3,0.5,2.5,true\n8,1.25,,1.0,5,false\n"

    converted, rows = convert_bytes(tmp_path, content, "table.csv")

    assert {column["name"]: column["type"] for column in converted.columns} == {
        "code": "text",
        "price": "text",
        "count": "integer",
        "share": "number",
        "mixed": "text",
        "flag": "text",
    }
    assert rows[1] == {
        "code": "8",
        "price": "1.25",
        "count": None,
        "share": 1.0,
        "mixed": "5",
        "flag": "false",
    }


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_of_a_csv_file_is_found_in_its_header(delimiter: str, tmp_path: Path) -> None:
    content = f"prompt{delimiter}answer\n1+1=?{delimiter}2\n".encode()

    _, rows = convert_bytes(tmp_path, content, "table.csv")

    assert rows == [{"prompt": "1+1=?", "answer": 2}]


def test_quoted_csv_cells_keep_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    content = b'prompt,answer\r\n"a, ""b""\nc",d\r\n'

    _, rows = convert_bytes(tmp_path, content, "table.csv")

    assert rows == [{"prompt": 'a, "b"\nc', "answer": "d"}]


def test_nested_messages_are_kept_with_their_keys_in_order(tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "Hello"}]},
        {"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]},
    ]

    converted, found = convert_bytes(tmp_path, json_lines(rows), "chat.jsonl")

    assert found == rows
    assert converted.columns == [{"name": "messages", "type": "list<object{role: text, content: text}>"}]


def test_a_missing_key_is_null_and_a_late_key_is_a_column(tmp_path: Path) -> None:
    rows = [{"a": 1}] * 3000 + [{"a": 2.5, "b": [{"c": "late"}]}]

    _, found = convert_bytes(tmp_path, json_lines(rows), "late.jsonl")

    assert found[0] == {"a": 1.0, "b": None}
    assert found[3000] == {"a": 2.5, "b": [{"c": "late"}]}
    assert len(found) == 3001


def test_empty_objects_become_null_because_parquet_has_none(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "a", "extra": {}, "deep": [{"x": {}}]}]

    _, found = convert_bytes(tmp_path, json_lines(rows), "empty.jsonl")

    assert found == [{"question": "q", "answer": "a", "extra": None, "deep": [{"x": None}]}]


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8", "utf-8"), ("utf-8-sig", "utf-8-sig"), ("gb18030", "gb18030")]
)
@pytest.mark.parametrize("filename", ["rows.jsonl", "rows.json", "rows.csv"])
def test_chinese_text_is_read_in_every_encoding(
    encoding: str, name: str, filename: str, tmp_path: Path
) -> None:
    row = {"question": "小明有三个苹果，吃了一个，还剩几个？", "answer": "还剩两个。"}
    text = {
        "rows.jsonl": json.dumps(row, ensure_ascii=False),
        "rows.json": json.dumps([row], ensure_ascii=False),
        "rows.csv": f"question,answer\n{row['question']},{row['answer']}\n",
    }[filename]

    converted, found = convert_bytes(tmp_path, text.encode(encoding), filename)

    assert found == [row]
    assert converted.encoding == name


@pytest.mark.parametrize(
    ("filename", "content", "kind"),
    [
        ("lines.json", b'{"text": "a"}\n{"text": "b"}\n', FileKind.JSONL),
        ("array.jsonl", b' [{"text": "a"}, {"text": "b"}]', FileKind.JSON),
        ("unnamed", b'{"text": "a"}\n{"text": "b"}', FileKind.JSONL),
        ("crlf.jsonl", b'{"text": "a"}\r\n\r\n{"text": "b"}\r\n', FileKind.JSONL),
    ],
)
def test_a_file_is_read_for_what_it_is_not_for_its_name(
    filename: str, content: bytes, kind: FileKind, tmp_path: Path
) -> None:
    converted, rows = convert_bytes(tmp_path, content, filename)

    assert converted.kind is kind
    assert rows == [{"text": "a"}, {"text": "b"}]


def test_a_row_longer_than_the_reading_window_is_read_whole(tmp_path: Path) -> None:
    rows = [{"text": "x" * (MAX_ROW_BYTES // 4), "n": n} for n in range(3)]

    _, found = convert_bytes(tmp_path, json.dumps(rows).encode(), "long.json")

    assert found == rows


def test_pages_of_rows_read_only_the_row_groups_that_hold_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert_bytes(tmp_path, json_lines([{"text": str(n)} for n in range(5000)]), "many.jsonl")
    read_groups: list[int] = []
    original = pq.ParquetFile.read_row_group

    def note_group(file: pq.ParquetFile, group: int) -> pa.Table:
        read_groups.append(group)
        return original(file, group)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", note_group)

    rows = read_page(tmp_path / "data.parquet", offset=2040, limit=20)

    assert [row["text"] for row in rows] == [str(n) for n in range(2040, 2060)]
    assert read_groups == [1, 2]
    assert read_page(tmp_path / "data.parquet", offset=5000, limit=20) == []


def test_memory_stays_flat_while_a_large_file_is_read(tmp_path: Path) -> None:
    line = json.dumps({"question": "q" * 2000, "answer": "a" * 2000}) + "\n"
    with (tmp_path / "upload").open("w") as file:
        for _ in range(20_000):
            file.write(line)
    pool_before = pa.default_memory_pool().max_memory()

    tracemalloc.start()
    convert(tmp_path / "upload", "large.jsonl", tmp_path / "data.parquet")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (tmp_path / "upload").stat().st_size > 75 * 1024**2
    assert peak < 40 * 1024**2
    assert pa.default_memory_pool().max_memory() - pool_before < 120 * 1024**2
