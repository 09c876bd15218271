"""Columns that mix numbers and texts."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.reading import json_lines, shards
from trellis_data.reading.importing import ImportReport, import_rows
from trellis_data.reading.sources import LocalSource


def _import(folder: Path, mixed: Any, **files: bytes) -> tuple[ImportReport, list[dict[str, Any]]]:
    source, out = folder / "in", folder / "out"
    source.mkdir()
    for name, content in files.items():
        (source / name.replace("_", ".")).write_bytes(content)
    report = import_rows(LocalSource(source), out, mixed=mixed)
    return report, [row for name in report.shards for row in pq.read_table(out / name).to_pylist()]


def _lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_the_first_kind_counts_unless_texts_are_asked_for(tmp_path: Path) -> None:
    content = _lines({"n": 1}, {"n": "x"}, {"n": 2.5}, {"n": None})
    for mixed in ("quarantine", "text"):
        (tmp_path / mixed).mkdir()

    strict, first = _import(tmp_path / "quarantine", "quarantine", rows_jsonl=content)
    wide, every = _import(tmp_path / "text", "text", rows_jsonl=content)

    assert ([row["n"] for row in first], strict.quarantined) == ([1.0, 2.5, None], 1)
    assert ([row["n"] for row in every], wide.quarantined) == (["1", "x", "2.5", None], 0)


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"k": [value]}])
def test_a_truth_value_among_decimal_numbers_is_no_number(wrap: Any, tmp_path: Path) -> None:
    content = _lines(*({"n": wrap(value)} for value in (0.5, True, 2)))
    for mixed in ("quarantine", "text"):
        (tmp_path / mixed).mkdir()

    strict, first = _import(tmp_path / "quarantine", "quarantine", rows_jsonl=content)
    _, every = _import(tmp_path / "text", "text", rows_jsonl=content)

    assert [row["n"] for row in first] == [wrap(0.5), wrap(2.0)]
    assert strict.reasons == {"type_conflict": 1}
    assert [row["n"] for row in every] == [wrap("0.5"), wrap("true"), wrap("2")]


def test_nested_values_and_numbers_of_any_length_keep_their_digits(tmp_path: Path) -> None:
    huge = 12345678901234567890123
    content = _lines({"a": [{"b": "x"}, {"b": 1}], "i": "id"}, {"a": [{"b": None}], "i": huge})

    report, rows = _import(tmp_path, "text", rows_jsonl=content)

    assert report.quarantined == 0
    assert rows[0] == {"a": [{"b": "x"}, {"b": "1"}], "i": "id"}
    assert rows[1] == {"a": [{"b": None}], "i": str(huge)}


def test_what_is_not_plain_is_never_made_a_text(tmp_path: Path) -> None:
    report, rows = _import(tmp_path, "text", rows_jsonl=_lines({"n": "x"}, {"n": {"k": 1}}, {"n": [1]}))

    assert rows == [{"n": "x"}]
    assert report.reasons == {"type_conflict": 2}


def test_files_with_types_are_widened_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": ["x"]}), tmp_path / "b.parquet")
    numbers, texts = ((tmp_path / name).read_bytes() for name in ("a.parquet", "b.parquet"))

    _, rows = _import(tmp_path, "text", a_parquet=numbers, b_parquet=texts)

    assert [row["n"] for row in rows] == ["1", "2", "x"]


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.sampled_from(["x", "1"]),
        min_size=1,
        max_size=20,
    ),
    size=st.integers(1, 7),
)
def test_texts_do_not_depend_on_where_blocks_and_shards_are_cut(
    values: list[Any], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = _lines(*({"id": n, "n": value} for n, value in enumerate([*values, "last"])))

    whole = _import(tmp_path_factory.mktemp("whole"), "text", rows_jsonl=content)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "BLOCK_ROWS", size)
        patch.setattr(shards, "MAX_SHARD_ROWS", size)
        cut = _import(tmp_path_factory.mktemp("cut"), "text", rows_jsonl=content)[1]

    assert cut == whole
    assert len(whole) == len(values) + 1
