"""An import: what is taken, what is quarantined, and that it is all or nothing."""

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_data.reading import shards
from trellis_data.reading.importing import ImportCancelled, Progress, import_rows
from trellis_data.reading.problems import UnreadableFile
from trellis_data.reading.sources import LocalSource

CHINESE = "小明有三个苹果，吃了一个，还剩几个？他又买了两个。"


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def test_bad_lines_are_quarantined_and_the_others_taken(imported: Any) -> None:
    content = lines({"n": 1}, {"n": 2}) + b'{"n": }\n[1]\n\n' + lines({"n": "3"}, {"n": 4})

    found = imported(content, "rows.jsonl")

    assert [row["n"] for row in found.rows] == [1, 2, 4]
    assert [(each["line"], each["row"], each["code"]) for each in found.quarantined] == [
        (3, 3, "not_json"),
        (4, 4, "not_an_object"),
        (6, 5, "type_conflict"),
    ]
    assert found.quarantined[0]["raw"] == '{"n": }'
    assert found.quarantined[2]["message"] == "text where earlier rows have number"
    assert found.report.reasons == {"not_json": 1, "not_an_object": 1, "type_conflict": 1}


@pytest.mark.parametrize(
    ("filename", "content", "codes"),
    [
        ("a.json", b'[{"n": 1}, {"n": }, {"n": 3}]', ["not_json"]),
        ("b.json", b'[{"n": 1}, 5, {"n": 3}]', ["not_an_object"]),
        (
            "d.json",
            b'[{"n": 1, "m": [{"k": 0}, {"k": 0}]}, {"n": 2, "m": [{"k": 0}, {"k": 0]}, {"n": 3}]',
            ["not_json"],
        ),
        ("e.json", b'[\n  {"n": 1,\n   "m": [\n    {"n": 0 x}]},\n  {"n": 3}\n]', ["not_json"]),
        ("f.csv", b"n\n1\n1,2\n3\n", ["cell_count"]),
        ("g.csv", b'n,m\n1,a\n"2,b\n3,c\n', ["not_csv"]),
        ("h.csv", b"n,m\n1,a\n2,\x00\n3,c\n", ["nul_byte"]),
    ],
)
def test_reading_goes_on_after_a_bad_row(
    filename: str, content: bytes, codes: list[str], imported: Any
) -> None:
    found = imported(content, filename)

    assert [each["code"] for each in found.quarantined] == codes
    assert found.rows[-1]["n"] == 3
    assert all(row["n"] in (1, 3) for row in found.rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"n": 1}\n {"n": 3}]', "expected ',' or ']' but found '{'"),
        (b'[{"n": 1}; {"n": 3}]', "expected ',' or ']' but found ';'"),
        (b'[{"n": 1}, {"n": 3}', "found the end of the file"),
        (b'[{"n": 1}][{"n": 3}]', "'[' follows the end of the array"),
    ],
)
def test_what_is_wrong_between_rows_is_a_warning_and_no_row(
    content: bytes, message: str, imported: Any
) -> None:
    found = imported(content, "rows.json")

    assert [row["n"] for row in found.rows] == [1, 3]
    assert (found.report.rows, found.report.quarantined, found.quarantined) == (2, 0, [])
    warning = found.report.warnings[0]
    assert (warning["source"], warning["code"]) == ("rows.json", "not_json")
    assert message in warning["message"]


def test_words_between_rows_are_kept_in_quarantine(imported: Any) -> None:
    found = imported(b'[{"n": 1}] lost words', "rows.json")

    assert [each["raw"] for each in found.quarantined] == ["lost words"]
    assert found.report.warnings == []


def test_a_cut_off_archive_is_a_warning_beside_the_rows(imported: Any) -> None:
    whole = lines(*({"n": n, "text": f"{n * 7919 % 104729:x}"} for n in range(20_000)))
    found = imported(gzip.compress(whole)[:-2000], "rows.jsonl.gz")

    assert [each["code"] for each in found.report.warnings] == ["file_truncated"]
    assert [each["code"] for each in found.quarantined] in ([], ["not_json"])  # the row that is cut in two
    assert found.report.files[0].damage


def test_types_are_those_of_all_rows_whatever_shard_they_lie_in(
    imported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MAX_SHARD_ROWS", 1000)
    rows = [{"n": n, "x": None} for n in range(5000)] + [{"n": 0.5, "x": "late", "deep": [{"k": [1]}]}]

    found = imported(lines(*rows), "rows.jsonl")

    schemas = [pq.read_schema(found.folder / name) for name in found.report.shards]
    assert len(schemas) == 6
    assert all(schema.equals(schemas[0]) for schema in schemas)
    assert found.rows[:5000] == [{"n": float(n), "x": None, "deep": None} for n in range(5000)]
    assert found.rows[5000] == rows[5000]


@pytest.mark.parametrize(
    "column",
    [pa.array(["a", "b"] * 4500).dictionary_encode(), pa.array(["a"] * 9000, pa.large_string())],
    ids=["dictionary", "large"],
)
def test_columns_of_any_arrow_type_are_stored_in_full_row_groups(column: pa.Array, imported: Any) -> None:
    content = io.BytesIO()
    with pa.ipc.new_file(content, pa.schema([("text", column.type)])) as writer:
        writer.write_table(pa.table({"text": column}))

    found = imported(content.getvalue(), "rows.arrow")

    (shard,) = [pq.read_metadata(found.folder / name) for name in found.report.shards]
    assert shard.num_rows == 9000
    assert shard.num_row_groups <= 6


def test_an_integer_that_a_later_decimal_column_cannot_hold_is_quarantined_with_its_line(
    imported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MAX_SHARD_ROWS", 1000)
    rows: list[Any] = [{"n": n} for n in range(9000)]
    rows[1234] = {"n": 2**53 + 1}

    found = imported(lines(*rows, {"n": 0.5}), "rows.jsonl")

    (bad,) = found.quarantined
    assert (bad["line"], bad["column"], bad["code"]) == (1235, "n", "type_conflict")
    assert found.report.rows + found.report.quarantined == 9001
    assert [row["n"] for row in found.rows] == [n for n in range(9000) if n != 1234] + [0.5]


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
def test_an_integer_of_more_than_64_bits_never_becomes_another_number(number: int, imported: Any) -> None:
    found = imported(lines({"n": 1}, {"n": number}, {"n": 3}), "rows.jsonl")

    assert [row["n"] for row in found.rows] == [1, 3]
    assert "64 bits" in found.quarantined[0]["message"]


def test_large_decimals_are_not_taken_for_integers(imported: Any) -> None:
    assert [row["n"] for row in imported(lines({"n": 1e300}, {"n": 0.5}), "rows.jsonl").rows] == [1e300, 0.5]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("gb18030", "gb18030"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-32", "utf-32"),
    ],
)
@pytest.mark.parametrize("filename", ["rows.jsonl", "rows.json", "rows.csv"])
def test_text_is_read_in_every_encoding(encoding: str, name: str, filename: str, imported: Any) -> None:
    rows = [{"question": CHINESE, "answer": f"{number}个"} for number in range(50)]
    text = {
        "rows.jsonl": lines(*rows).decode(),
        "rows.json": json.dumps(rows, ensure_ascii=False),
        "rows.csv": "question,answer\n" + "".join(f"{CHINESE},{row['answer']}\n" for row in rows),
    }[filename]

    found = imported(text.encode(encoding), filename)

    assert found.rows == rows
    (file,) = found.report.files
    assert file.encoding == name
    assert file.encoding_confidence is not None
    assert file.encoding_confidence >= 0.8


def test_western_text_is_read_with_a_stated_confidence(imported: Any) -> None:
    sentence = "Où est passé le garçon qui a mangé la crème brûlée à côté de l'hôtel près de la forêt ?"
    rows = [{"text": f"{sentence} {number}"} for number in range(30)]

    found = imported(lines(*rows).decode().encode("latin-1"), "rows.jsonl")

    assert found.rows == rows
    assert 0 < found.report.files[0].encoding_confidence < 1
    assert found.report.files[0].encoding_reason


def test_a_folder_is_read_whole_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "b.csv").write_text("n\n2\n")
    (tmp_path / "in" / "a.jsonl").write_bytes(lines({"n": 1}))
    (tmp_path / "in" / "deep" / "c.json").write_text('[{"n": 3, "m": 4}]')
    (tmp_path / "in" / "README.md").write_text("nothing")
    (tmp_path / "in" / ".hidden.jsonl").write_bytes(lines({"n": 9}))

    report = import_rows(LocalSource(tmp_path / "in"), tmp_path / "out")

    rows = [row for name in report.shards for row in pq.read_table(tmp_path / "out" / name).to_pylist()]
    assert rows == [{"n": 1, "m": None}, {"n": 2, "m": None}, {"n": 3, "m": 4}]
    assert [file.name for file in report.files] == ["a.jsonl", "b.csv", "deep/c.json"]


def test_progress_is_told_and_a_cancelled_import_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(lines(*({"n": n} for n in range(20_000))))
    seen: list[Progress] = []

    with pytest.raises(ImportCancelled):
        import_rows(
            LocalSource(tmp_path / "rows.jsonl"),
            tmp_path / "out",
            progress=seen.append,
            is_cancelled=lambda: len(seen) > 2,
        )

    assert seen[-1].rows > 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_an_import_never_writes_over_another(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(lines({"n": 1}))
    (tmp_path / "out").mkdir()

    with pytest.raises(FileExistsError):
        import_rows(LocalSource(tmp_path / "rows.jsonl"), tmp_path / "out")


def test_where_no_row_can_be_taken_the_first_reason_is_the_error(imported: Callable[..., Any]) -> None:
    with pytest.raises(UnreadableFile, match=r"None of the 2 rows .* line 1: not valid JSON") as caught:
        imported(b"{nothing\n{here\n", "rows.jsonl")

    assert caught.value.code == "no_row_readable"


def test_random_damage_never_loses_a_row_unseen(imported: Any) -> None:
    chance = random.Random(7)
    content = bytearray(lines(*({"id": n, "text": f"row {n} {CHINESE}"} for n in range(300))))
    for _ in range(60):
        at = chance.randrange(len(content))
        if content[at] != 10:
            content[at] = chance.choice([0, 34, 92, 123, 125, 200, 255])

    found = imported(bytes(content), "rows.jsonl")

    assert found.report.rows + found.report.quarantined == 300
    assert found.report.quarantined > 10
