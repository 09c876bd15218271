"""Digests of rows: the same for the same rows, whatever stands around them."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.versions.hashing import digest_rows, encode_rows, plain_schema


def digest(table: pa.Table) -> list[str]:
    return [f"{row['high']:016x}{row['low']:016x}" for row in digest_rows(table)[0]]


def test_the_digests_of_these_rows_never_change() -> None:
    table = pa.table(
        {
            "text": ['a "quoted"\n文本', None],
            "n": [1, -(2**63)],
            "x": [0.1, math.inf],
            "ok": [True, None],
            "at": pa.array([datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)] * 2, pa.timestamp("us", tz="UTC")),
            "raw": [b"\x00\xff", b""],
            "chat": [[{"role": "user", "content": "hi"}], []],
            "price": [Decimal("1.20"), None],
        }
    )

    assert encode_rows(table).to_list() == [
        '{"at":"2024-02-29 01:02:03.000000Z","chat":[{"content":"hi","role":"user"}],"n":1,"ok":true,'
        '"price":"1.20","raw":"b00ff","text":"a \\"quoted\\"\\n文本","x":"f4591870180066957722"}',
        '{"at":"2024-02-29 01:02:03.000000Z","chat":[],"n":-9223372036854775808,"ok":null,'
        '"price":null,"raw":"b","text":null,"x":"f9218868437227405312"}',
    ]
    assert digest(table) == ["9636331f6790a9d470db90f80ab414d2", "8a6dd8ee44a57d07e296a4ee88f9ea29"]


def test_the_order_of_columns_and_members_does_not_matter() -> None:
    one = pa.table({"a": [1], "b": [[{"role": "user", "content": "x"}]]})
    other = pa.table({"b": [[{"content": "x", "role": "user"}]], "a": [1]})

    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1], pa.int8()), pa.array([1], pa.uint64())),
        (pa.array(["a"]), pa.array(["a"], pa.large_string())),
        (pa.array(["a"]), pa.array(["a"]).dictionary_encode()),
        (pa.array([[1, 2]]), pa.array([[1, 2]], pa.large_list(pa.int64()))),
        (pa.array([0.5], pa.float32()), pa.array([0.5])),
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([[1, 2]]), pa.array([[9], [1, 2]]).slice(1)),
    ],
)
def test_the_same_value_in_another_type_is_the_same(one: pa.Array, other: pa.Array) -> None:
    assert digest(pa.table({"a": one})) == digest(pa.table({"a": other}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], [1.0]),
        ([None], [float("nan")]),
        (["a"], [None]),
        ([""], [None]),
        ([[]], [None]),
        (["1"], [1]),
        ([b"a"], ["a"]),
        ([["a", "b"]], [["ab"]]),
        ([True], ["true"]),
    ],
)
def test_different_values_are_different(one: list[Any], other: list[Any]) -> None:
    assert digest(pa.table({"a": one})) != digest(pa.table({"a": other}))


_MESSAGES = st.fixed_dictionaries({"role": st.text(max_size=3), "k": st.none() | st.text(max_size=3)})
_VALUES = st.fixed_dictionaries(
    {
        "s": st.none() | st.text(max_size=8),
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(),
        "m": st.none()
        | st.lists(
            st.fixed_dictionaries({"role": st.text(max_size=3), "k": st.none() | st.text(max_size=3)}),
            max_size=3,
        ),
    }
)
_TYPES = pa.schema(
    [
        ("s", pa.string()),
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("m", pa.list_(pa.struct([("role", pa.string()), ("k", pa.string())]))),
    ]
)


@settings(deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=8), st.data())
def test_a_row_has_its_digest_wherever_it_stands(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    table = pa.Table.from_pylist(rows, schema=_TYPES)
    at = data.draw(st.integers(0, len(rows) - 1))

    alone = pa.Table.from_pylist([rows[at]], schema=_TYPES)

    assert digest(table)[at] == digest(alone)[0] == digest(table.slice(at, 1))[0]


def test_stored_types_have_no_dictionaries_and_one_width() -> None:
    schema = pa.schema(
        [
            ("a", pa.dictionary(pa.int32(), pa.large_string())),
            ("b", pa.large_list(pa.struct([("c", pa.large_binary())]))),
        ]
    )

    assert plain_schema(schema) == pa.schema(
        [("a", pa.string()), ("b", pa.list_(pa.struct([("c", pa.binary())])))]
    )
