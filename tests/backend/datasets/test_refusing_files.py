"""A file that cannot be trained on is refused, naming the line and the reason."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trellis_api.datasets.intake.convert import convert
from trellis_api.datasets.intake.problems import MAX_PROBLEMS, BadRows
from trellis_data.reading.problems import MAX_LEAF_COLUMNS, MAX_ROW_BYTES, RowProblem, UnreadableFile

GOOD = b'{"question": "1+1", "answer": "2"}\n'


def problems_of(folder: Path, content: bytes, filename: str) -> list[RowProblem]:
    (folder / "upload").write_bytes(content)
    with pytest.raises(BadRows) as caught:
        convert(folder / "upload", filename, folder / "data.parquet")
    return caught.value.problems


def refusal_of(folder: Path, content: bytes, filename: str) -> UnreadableFile:
    (folder / "upload").write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        convert(folder / "upload", filename, folder / "data.parquet")
    return caught.value


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"question": "1+1", "answer": }', "not valid JSON: Expecting value (character 31)"),
        (b'["a list"]', "the line is an array, not an object"),
        (b'"text"', "the line is a text, not an object"),
        (b"null", "the line is null, not an object"),
        (b'{"question": "q", "answer": NaN}', "not valid JSON: NaN is not JSON; use null"),
        (b'{"question": "q", "answer": 1e999}', "not valid JSON: the number 1e999 is out of range"),
        (b'{"question": "q", "answer": 9223372036854775808}', "where earlier rows have text"),
        (b'{"question": "q", "answer": "\\ud800"}', "the text holds half of a surrogate pair"),
        (b'{"question": ["q"], "answer": "a"}', "list where earlier rows have text"),
        (b'{"question": "q", "answer": 5}', "number where earlier rows have text"),
        (b'{"question": "q", "answer": {"a": 1}}', "object where earlier rows have text"),
        (b'{"question": "q", "answer": "a", "": 1}', "a key is empty"),
        (b'{"question": "q", "answer": "a", "k\\u0000": 1}', "a key holds a NUL character"),
        (b'{"question": "q", "answer": "a", "x": [1, "a"]}', "the list mixes number and text"),
        (b'{"question": "q"}', "missing or null"),
        (b'{"question": "q", "answer": "a", "x": ' + b"[" * 900 + b"]" * 900 + b"}", "nested"),
        (b'{"question": "q", "answer": "a", "x": ' + b"[" * 100_000 + b"}", "nested too deeply"),
        (b'{"question": "q", "answer": "a", "x": ' + b"1" * 5000 + b"}", "integer string conversion"),
    ],
)
def test_a_bad_line_is_named_by_number_and_reason(line: bytes, reason: str, tmp_path: Path) -> None:
    problems = problems_of(tmp_path, GOOD * 2 + b"\n" + line + b"\n" + GOOD, "rows.jsonl")

    assert [(problem.line, problem.row) for problem in problems] == [(4, 3)]
    assert reason in problems[0].reason


def test_the_column_of_a_nested_misfit_is_named(tmp_path: Path) -> None:
    rows = [{"text": "a", "meta": {"tags": [{"id": 1}]}}, {"text": "b", "meta": {"tags": [{"id": "one"}]}}]
    content = "\n".join(json.dumps(row) for row in rows).encode()

    problem = problems_of(tmp_path, content, "rows.jsonl")[0]

    assert (problem.line, problem.column) == (2, "meta.tags[].id")
    assert problem.reason == "text where earlier rows have number"


def test_types_that_disagree_far_apart_are_found(tmp_path: Path) -> None:
    content = b'{"text": "a", "n": 1}\n' * 5000 + b'{"text": "a", "n": "1"}\n'

    problem = problems_of(tmp_path, content, "rows.jsonl")[0]

    assert (problem.line, problem.column) == (5001, "n")


def test_an_integer_that_a_decimal_column_cannot_hold_is_named(tmp_path: Path) -> None:
    content = f'{{"text": "a", "n": {2**53 + 1}}}\n'.encode() + b'{"text": "a", "n": 0.5}\n' * 2000

    problem = problems_of(tmp_path, content, "rows.jsonl")[0]

    assert (problem.line, problem.column) == (1, "n")
    assert "write it as text" in problem.reason


def test_many_bad_lines_are_reported_together_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes((GOOD + b"{broken\n") * 100)

    with pytest.raises(BadRows) as caught:
        convert(tmp_path / "upload", "rows.jsonl", tmp_path / "data.parquet")

    assert [problem.line for problem in caught.value.problems] == [2 * n for n in range(1, MAX_PROBLEMS + 1)]
    assert not caught.value.is_complete


def test_a_huge_line_is_refused_without_being_held(tmp_path: Path) -> None:
    content = GOOD + b'{"question": "' + b"x" * (MAX_ROW_BYTES + 10) + b'", "answer": "a"}\n'

    problem = problems_of(tmp_path, content, "rows.jsonl")[0]

    assert (problem.line, problem.reason) == (2, "the row is longer than 16 MiB")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b'[{"text": "a"},\n{"text": }]', 2, "not valid JSON: Expecting value"),
        (b'[{"text": "a"},\n\n{"text": "b"', 3, "not valid JSON"),
        (b'[{"text": "a"}\n{"text": "b"}]', 2, "expected ',' or ']' but found '{'"),
        (b'[{"text": "a"},\n 5]', 2, "the item is a number, not an object"),
        (b'[{"text": "a"}]\n\nmore', 3, "'m' follows the end of the array"),
        (b'[{"text": "a"}', 1, "found the end of the file"),
        (b'[{"text": "a"},]', 1, "not valid JSON"),
        (b'[{"text": "a"}, {"text": ' + b"[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_a_bad_item_of_an_array_is_named_by_its_line(
    content: bytes, line: int, reason: str, tmp_path: Path
) -> None:
    problem = problems_of(tmp_path, content, "rows.json")[0]

    assert problem.line == line
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"prompt,answer\na,b\na,b,c\n", 3, "3 cells, but the header has 2 columns"),
        (b'prompt,answer\na,b\n"a"x,b\n', 3, "not valid CSV"),
        (b'prompt,answer\na,b\n"never closed,b\nc,d\n', 3, "not valid CSV: unexpected end of data"),
        (b"prompt,answer\na," + b"b" * (MAX_ROW_BYTES + 1) + b"\n", 2, "the row is longer than 16 MiB"),
    ],
)
def test_a_bad_csv_record_is_named_by_the_line_where_it_begins(
    content: bytes, line: int, reason: str, tmp_path: Path
) -> None:
    problem = problems_of(tmp_path, content, "rows.csv")[0]

    assert problem.line == line
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "no messages"),
        ([{"role": "user", "content": "q"}, {"role": None, "content": "a"}], "message 2 has no role"),
        ([{"role": "wizard", "content": "q"}], "message 1 has the role 'wizard'"),
        ([{"role": "user", "content": None}], "message 1 has no content"),
    ],
)
def test_messages_that_cannot_be_formatted_are_named(
    messages: list[dict[str, Any]], reason: str, tmp_path: Path
) -> None:
    good = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    content = "\n".join(json.dumps(row) for row in (good, {"messages": messages})).encode()

    problem = problems_of(tmp_path, content, "chat.jsonl")[0]

    assert (problem.line, problem.column) == (2, "messages")
    assert reason in problem.reason


def test_a_null_answer_in_parquet_is_named_by_its_row(tmp_path: Path) -> None:
    output = io.BytesIO()
    rows = [{"prompt": "a", "answer": "b"}] * 5000 + [{"prompt": "a", "answer": None}]
    pq.write_table(pa.Table.from_pylist(rows), output)

    problem = problems_of(tmp_path, output.getvalue(), "rows.parquet")[0]

    assert (problem.line, problem.row, problem.column) == (None, 5001, "answer")


@pytest.mark.parametrize(
    ("filename", "content", "code"),
    [
        ("rows.jsonl", b"", "dataset_empty"),
        ("rows.jsonl", b" \n\n ", "dataset_empty"),
        ("rows.json", b"[]", "dataset_empty"),
        ("rows.jsonl", b"{}\n{}\n", "dataset_empty"),
        ("rows.csv", b"prompt,answer\n", "dataset_empty"),
        ("rows.csv", b"prompt,,answer\na,b,c\n", "bad_header"),
        ("rows.csv", b"prompt,prompt\na,b\n", "bad_header"),
        ("rows.jsonl", bytes(range(256)) * 40, "not_text"),
        ("rows.jsonl", b'{"text": "a\x00b"}\n', "not_text"),
        ("rows.jsonl", '{"text": "é café à"}\n'.encode("latin-1"), "encoding_unknown"),
        ("rows.csv", "text\nabc\n".encode("utf-16"), "encoding_unknown"),
        ("rows.jsonl", b"\x1f\x8b\x08\x00rest", "unsupported_file_type"),
        ("rows.csv", b"PK\x03\x04rest", "unsupported_file_type"),
        ("rows.exe", b"MZ\x90 something", "unsupported_file_type"),
        ("rows.parquet", b'{"text": "a"}', "file_damaged"),
        ("rows.parquet", b"PAR1" + b"\x07" * 200 + b"PAR1", "file_damaged"),
    ],
)
def test_a_file_that_is_no_dataset_is_refused_with_a_code(
    filename: str, content: bytes, code: str, tmp_path: Path
) -> None:
    assert refusal_of(tmp_path, content, filename).code == code


def test_an_encoding_error_names_line_and_offset(tmp_path: Path) -> None:
    content = GOOD * 3 + b'{"question": "caf\xe9 ", "answer": "a"}\n'

    refusal = refusal_of(tmp_path, content, "rows.jsonl")

    assert refusal.details == {"line": 4, "offset": content.index(b"\xe9")}


def test_objects_whose_keys_are_data_are_refused_before_they_become_columns(tmp_path: Path) -> None:
    row = {"text": "a", "scores": {f"id_{n}": n for n in range(MAX_LEAF_COLUMNS + 1)}}

    refusal = refusal_of(tmp_path, json.dumps(row).encode(), "rows.jsonl")

    assert refusal.code == "too_many_columns"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(min_size=1, max_size=200),
    start=st.sampled_from([b"", b"{", b"[", b'{"a":', b"PAR1", b"a,b\n", b"\xef\xbb\xbf"]),
    filename=st.sampled_from(["x.jsonl", "x.json", "x.csv", "x.parquet", "x.tsv", "../../etc/passwd", ""]),
)
def test_no_bytes_whatsoever_break_the_reader(
    content: bytes, start: bytes, filename: str, tmp_path: Path
) -> None:
    (tmp_path / "upload").write_bytes(start + content)

    with contextlib.suppress(BadRows, UnreadableFile):
        converted = convert(tmp_path / "upload", filename, tmp_path / "data.parquet")
        assert converted.row_count > 0


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 2000), value=st.integers(0, 255))
def test_a_damaged_parquet_file_is_refused_or_read_but_never_breaks(
    position: int, value: int, tmp_path: Path
) -> None:
    output = io.BytesIO()
    pq.write_table(pa.table({"prompt": ["a", "b"] * 50, "answer": list(range(100))}), output)
    content = bytearray(output.getvalue())
    content[position % len(content)] = value
    (tmp_path / "upload").write_bytes(content)

    with contextlib.suppress(BadRows, UnreadableFile):
        converted = convert(tmp_path / "upload", "rows.parquet", tmp_path / "data.parquet")
        assert converted.row_count > 0
