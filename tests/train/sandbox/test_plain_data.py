"""Plain data comes back as it was, and is of built-in types whatever is sent."""

import collections
import enum
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_train.sandbox.plain_data import NotPlain, dump, load

_KEYS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    st.complex_numbers(allow_nan=False),
)  # fmt: skip
_HASHABLE = st.recursive(
    _KEYS, lambda inner: st.one_of(st.lists(inner).map(tuple), st.frozensets(inner)), max_leaves=10
)
VALUES = st.recursive(
    _HASHABLE,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(_HASHABLE, inner), st.sets(_HASHABLE)
    ),
    max_leaves=20,
)
_KINDS = ["int", "bytes", "complex", "dict", "tuple", "set", "frozenset", "x"]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(
            st.sampled_from(["int", "bytes", "complex", "dict", "tuple", "set", "frozenset", "x"]),
            inner,
            max_size=2,
        ),
    ),
    max_leaves=20,
)
_BUILT_IN = {type(None), bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict}


def types_of(value: Any) -> set[type]:
    """Types of the value and of all that is in it."""
    found = {type(value)}
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    if isinstance(value, list | tuple | set | frozenset | dict):
        for part in parts:
            found |= types_of(part)
    return found


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_value_comes_back_with_its_types(value: Any) -> None:
    found = load(dump(value))

    # With the types of all parts, which equality does not tell apart: 1 == 1.0 == True.
    assert (found, repr(type(found))) == (value, repr(type(value)))
    assert types_of(found) == types_of(value)


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_whatever_is_read_is_of_built_in_types(sent: Any) -> None:
    try:
        found = load(json.dumps(sent))
    except NotPlain:
        return

    assert types_of(found) <= _BUILT_IN


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_text_that_is_none_of_ours_is_refused(text: str) -> None:
    try:
        found = load(text)
    except NotPlain:
        return

    assert types_of(found) <= _BUILT_IN


@pytest.mark.parametrize("value", [math.inf, -math.inf, -0.0, 1e308, 5e-324])
def test_floats_come_back_to_the_bit(value: float) -> None:
    assert math.copysign(1, load(dump(value))) == math.copysign(1, value)
    assert load(dump(value)) == value


def test_what_is_no_number_comes_back_as_such() -> None:
    assert math.isnan(load(dump(float("nan"))))


_Point = collections.namedtuple("_Point", "x y")


class _Level(enum.IntEnum):
    HIGH = 3


class _Liar(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter([5])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (_Level.HIGH, 3),
        (_Liar([1, 2]), [1, 2]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (_Point(1, 2), (1, 2)),
        (bytearray(b"x"), b"x"),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
    ],
)
def test_subclasses_and_scalars_become_their_base(value: Any, base: Any) -> None:
    found = load(dump(value))

    assert (found, type(found)) == (base, type(base))


@pytest.mark.parametrize(
    "value", [object(), iter([]), len, int, range(3), np.zeros(3), np.zeros(1), {}.keys(), slice(1)]
)
def test_everything_else_is_refused(value: Any) -> None:
    with pytest.raises(NotPlain):
        dump([value])


@pytest.mark.parametrize(
    "text", ['{"set": [[1]]}', '{"dict": [[1]]}', '{"int": 5}', '{"bytes": "x"}', "{}", "[" * 100_000]
)
def test_text_that_cannot_be_a_value_is_refused(text: str) -> None:
    with pytest.raises(NotPlain):
        load(text)
