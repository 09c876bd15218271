"""Rows whose keys are data are refused at little cost."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_data.reading import column_types
from trellis_data.reading.blocks import SourceRow
from trellis_data.reading.column_types import ColumnTypes
from trellis_data.reading.keys import KeyCount
from trellis_data.reading.problems import MAX_LEAF_COLUMNS

_INNER = st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=2)
#: Rows that agree with each other, whatever keys each of them has.
_ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "n": st.none() | st.integers(0, 9),
            "o": st.none() | _INNER,
            "l": st.none() | st.lists(st.none() | _INNER, max_size=3),
            "ll": st.lists(st.lists(_INNER, max_size=2), max_size=2),
        },
    ),
    min_size=1,
    max_size=6,
)


def _rows(values: list[dict[str, Any]]) -> list[SourceRow]:
    return [SourceRow(line, value, 1) for line, value in enumerate(values, start=1)]


@given(_ROWS, _ROWS)
def test_keys_are_counted_as_the_columns_that_they_become(
    known: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    keys = KeyCount(pa.infer_type(known))

    assert all(keys.take(row) for row in rows)

    assert keys._leaves == column_types._measure(pa.infer_type(known + rows))[1]


def test_a_row_that_does_not_fit_takes_no_room() -> None:
    keys = KeyCount(pa.struct([]))

    assert keys.take({f"a{n}": 1 for n in range(MAX_LEAF_COLUMNS - 2)})
    assert not keys.take({"b": {f"k{n}": 1 for n in range(3)}})
    assert keys.take({"b": {"k0": 1, "k1": 2}})
    assert not keys.take({"c": 1})


def test_each_row_beyond_the_limit_costs_no_type(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    check = column_types._check_shape

    def counted(kind: pa.DataType) -> None:
        nonlocal made
        made += 1
        check(kind)

    monkeypatch.setattr(column_types, "_check_shape", counted)
    rows = _rows([{"id": n, f"k{n}": 1} for n in range(4000)] + [{"id": "text"}])

    pieces, misfits = ColumnTypes().admit(rows)

    assert sum(len(piece.rows) for piece in pieces) == MAX_LEAF_COLUMNS - 1
    assert [misfit.code for misfit in misfits].count("too_many_columns") == 4000 - (MAX_LEAF_COLUMNS - 1)
    assert misfits[-1].code == "type_conflict"
    assert [misfit.row.line for misfit in misfits] == sorted(misfit.row.line for misfit in misfits)
    assert made < 100
