"""The common column types of rows that come in batches, and the rows that do not agree with them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from trellis_contracts.row_formats import ColumnKind

from trellis_data.reading.blocks import SourceRow
from trellis_data.reading.keys import KeyCount
from trellis_data.reading.mixing import Kinds, Mixed, Texts, as_text_types, as_texts
from trellis_data.reading.problems import MAX_DEPTH, MAX_LEAF_COLUMNS

#: What Arrow raises for values that have no common type, or none at all.
CONVERSION_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeError,
)
#: Descriptions of types that are kinds of their own.
_SIMPLE_KINDS = {
    "text": ColumnKind.TEXT,
    "boolean": ColumnKind.BOOLEAN,
    "integer": ColumnKind.NUMBER,
    "number": ColumnKind.NUMBER,
}
#: Rows whose key order is looked at; Arrow sorts keys, people do not.
_ORDER_SAMPLE = 200
_TOO_MANY_KEYS = (
    f"the rows have more than {MAX_LEAF_COLUMNS} different keys; objects whose keys are data (ids, words) "
    "should be lists of {key, value} objects"
)


class Misfit(NamedTuple):
    """A row whose values do not agree with the types, where and why."""

    row: SourceRow
    column: str | None
    reason: str
    code: str


class Piece(NamedTuple):
    """Rows that follow each other and agree, and their values."""

    rows: list[SourceRow]
    array: pa.StructArray


class ShapeError(ValueError):
    """A row has more structure than can be stored."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ColumnTypes:
    """The types seen so far. Integers widen to numbers and missing keys to nulls, with ``mixed`` "text" also
    different plain kinds to texts; nothing else mixes.
    """

    def __init__(self, mixed: Mixed = "quarantine") -> None:
        self.struct: pa.StructType = pa.struct([])
        #: Where numbers have become texts; it grows.
        self.texts: Texts = {}
        self._mixed = mixed

    def admit(self, rows: list[SourceRow]) -> tuple[list[Piece], list[Misfit]]:
        """Widen the types by these rows and convert them; those that do not fit are named instead.

        There is one piece where all rows fit. Of rows that do not agree among each other the first counts.
        """
        if not rows:
            return [], []
        if self.texts:
            self.struct = as_text_types(self.struct, self.texts)
        try:
            return [Piece(rows, self._convert([row.value for row in rows]))], []
        except (*CONVERSION_ERRORS, ShapeError) as error:
            if not isinstance(error, ShapeError) and self._learn_mixed(rows):
                return self.admit(rows)
            if len(rows) == 1:
                return [], [self._explain(rows[0], error)]
            if isinstance(error, ShapeError) and error.code == "too_many_columns":
                fitting, refused = self._within_limit(rows)
                if refused:
                    pieces, misfits = self.admit(fitting)
                    return pieces, _in_order(rows, refused + misfits)
        # By halves: a few bad rows among many cost a few conversions of the others.
        middle = len(rows) // 2
        early, early_misfits = self.admit(rows[:middle])
        late, late_misfits = self.admit(rows[middle:])
        return early + late, early_misfits + late_misfits

    def admit_type(self, kind: pa.StructType) -> None:
        """Widen the types by those of rows that have types already. Raises ShapeError and ArrowTypeError."""
        _check_shape(kind)
        if self._mixed == "text":
            kinds = Kinds()
            for each in (self.struct, kind):
                kinds.note_type(each)
            kinds.add_mixed(self.texts)
            if self.texts:
                self.struct, kind = (as_text_types(each, self.texts) for each in (self.struct, kind))
        self.struct = merge_types(self.struct, kind) if self.struct.num_fields else kind

    def _learn_mixed(self, rows: list[SourceRow]) -> bool:
        """Turn columns that mix kinds into text; return whether any further column became text."""
        if self._mixed != "text":
            return False
        kinds = Kinds()
        kinds.note_type(self.struct)
        for row in rows:
            kinds.note(row.value)
        return kinds.add_mixed(self.texts)

    def _convert(self, values: list[dict[str, Any]]) -> pa.StructArray:
        if max(map(len, values)) > MAX_LEAF_COLUMNS:
            raise ShapeError("too_many_columns", _TOO_MANY_KEYS)
        if self.texts:
            values = [as_texts(value, self.texts) for value in values]
        # Arrow infers a type even for values that do not agree; only the conversion tells.
        struct = self._widened(values)
        array = pa.array(values, type=struct)
        if _has_truth_as_number(values, struct):
            raise pa.ArrowInvalid("a truth value stands among decimal numbers")
        self.struct = struct
        return array

    def _widened(self, values: list[dict[str, Any]]) -> pa.StructType:
        inferred = pa.infer_type(values)
        _check_shape(inferred)
        if not self.struct.num_fields:
            return ordered_like(inferred, values[:_ORDER_SAMPLE])
        if inferred.equals(self.struct):
            return self.struct
        return merge_types(self.struct, inferred)

    def _within_limit(self, rows: list[SourceRow]) -> tuple[list[SourceRow], list[Misfit]]:
        """Separate the rows whose keys fit within the limit from the others, without building types."""
        keys = KeyCount(self.struct)
        fitting, refused = list[SourceRow](), list[Misfit]()
        for row in rows:
            if keys.take(row.value):
                fitting.append(row)
            else:
                refused.append(Misfit(row, None, _TOO_MANY_KEYS, "too_many_columns"))
        return fitting, refused

    def _explain(self, row: SourceRow, error: Exception) -> Misfit:
        if isinstance(error, ShapeError):
            return Misfit(row, None, str(error), error.code)
        value = as_texts(row.value, self.texts) if self.texts else row.value
        column, reason = explain_misfit(value, self.struct) or (None, str(error)[:300])
        return Misfit(row, column, reason, "type_conflict")


def _has_truth_as_number(values: list[Any], kind: pa.DataType) -> bool:
    """Return whether a boolean became a decimal number, the one mixture that Arrow accepts silently."""
    if pa.types.is_floating(kind):
        return any(value is True or value is False for value in values)
    if pa.types.is_struct(kind):
        fields = [field for field in kind if _has_decimals(field.type)]
        objects = [value for value in values if value is not None] if fields else []
        return any(
            _has_truth_as_number([value.get(field.name) for value in objects], field.type) for field in fields
        )
    if pa.types.is_list(kind) and _has_decimals(kind):
        items = [item for value in values if value is not None for item in value]
        return _has_truth_as_number(items, kind.value_type)
    return False


def _has_decimals(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_decimals(field.type) for field in kind)
    return pa.types.is_floating(kind) or (pa.types.is_list(kind) and _has_decimals(kind.value_type))


def _in_order(rows: list[SourceRow], misfits: list[Misfit]) -> list[Misfit]:
    """Sort misfits by their rows."""
    place = {id(row): number for number, row in enumerate(rows)}
    return sorted(misfits, key=lambda misfit: place[id(misfit.row)])


def merge_types(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return a type for the values of both, in the order of ``left``. Raise ArrowTypeError or ShapeError."""
    merged = pa.unify_schemas([pa.schema(list(left)), pa.schema(list(right))], promote_options="permissive")
    _check_shape(struct := pa.struct(list(merged)))
    return struct


def _check_shape(kind: pa.DataType) -> None:
    depth, leaves = _measure(kind)
    if depth > MAX_DEPTH + 1:
        raise ShapeError("too_deep", f"values are nested {depth - 1} deep; the limit is {MAX_DEPTH}")
    if leaves > MAX_LEAF_COLUMNS:
        raise ShapeError("too_many_columns", _TOO_MANY_KEYS)


def _measure(kind: pa.DataType) -> tuple[int, int]:
    """Return (depth, leaves) of a type; reject names that databases and Parquet readers cannot handle."""
    if pa.types.is_struct(kind):
        for field in kind:
            if not field.name or "\x00" in field.name:
                problem = "a key is empty" if not field.name else "a key holds a NUL character"
                raise ShapeError("bad_key", problem)
        inner = [_measure(field.type) for field in kind]
        return 1 + max((depth for depth, _ in inner), default=0), max(1, sum(leaves for _, leaves in inner))
    if is_list(kind):
        depth, leaves = _measure(kind.value_type)
        return depth + 1, leaves
    return 0, 1


def ordered_like(kind: pa.DataType, values: Iterable[Any]) -> pa.DataType:
    """Return the type with object keys in the order in which they first appear in ``values``."""
    if pa.types.is_struct(kind):
        objects = [value for value in values if isinstance(value, dict)]
        names = list(dict.fromkeys(name for value in objects for name in value))
        known = set(names)
        names += [field.name for field in kind if field.name not in known]
        fields = []
        for name in names:
            field = kind.field(name)
            inner = ordered_like(field.type, [value[name] for value in objects if name in value])
            fields.append(field.with_type(inner))
        return pa.struct(fields)
    if pa.types.is_list(kind):
        items = [item for value in values if isinstance(value, list) for item in value[:_ORDER_SAMPLE]]
        return pa.list_(ordered_like(kind.value_type, items))
    return kind


def explain_misfit(value: Any, kind: pa.DataType, column: str = "") -> tuple[str | None, str] | None:
    """Return (column, reason) of the first value that the type cannot hold; None if all fit."""
    if value is None or pa.types.is_null(kind):
        return _explain_alone(value, column)
    found, expected = _family_of(value), type_family(kind)
    if found != expected:
        return column or None, f"{found} where earlier rows have {expected}"
    if isinstance(value, dict):
        known = {field.name: field.type for field in kind}
        for name, item in value.items():
            path = f"{column}.{name}" if column else str(name)
            problem = explain_misfit(item, known.get(name, pa.null()), path)
            if problem:
                return problem
    elif isinstance(value, list):
        for item in value:
            if problem := explain_misfit(item, kind.value_type, f"{column}[]"):
                return problem
    else:
        return _explain_alone(value, column, kind)
    return None


def _explain_alone(value: Any, column: str, kind: pa.DataType | None = None) -> tuple[str | None, str] | None:
    """Explain why a value has no type of its own: a number too long, a broken character, a mixed list."""
    if isinstance(value, dict):
        for name, item in value.items():
            if problem := _explain_alone(item, f"{column}.{name}" if column else str(name)):
                return problem
        return None
    if isinstance(value, list):
        families = list(dict.fromkeys(_family_of(item) for item in value if item is not None))
        if len(families) > 1:
            return column or None, f"the list mixes {families[0]} and {families[1]}"
        for item in value:
            if problem := _explain_alone(item, f"{column}[]"):
                return problem
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(2**63) <= value < 2**63:
            return column or None, "the integer does not fit into 64 bits; write it as text"
        if kind is not None and pa.types.is_floating(kind) and abs(value) > 2**53:
            return column or None, "the integer is too long for a column of decimal numbers; write it as text"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeError:
            return column or None, "the text holds half of a surrogate pair"
    return None


def _family_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"


def type_family(kind: pa.DataType) -> str:
    """Return the kind of a type in JSON terms."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if is_text(kind):
        return "text"
    if is_list(kind):
        return "list"
    return "object" if pa.types.is_struct(kind) else str(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return whether the type is one of Arrow's strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether the type is one of Arrow's lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def describe_type(kind: pa.DataType) -> str:
    """Format a type for the dashboard: ``list<object{role: text, content: text}>``."""
    if is_list(kind):
        return f"list<{describe_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "object{" + ", ".join(f"{field.name}: {describe_type(field.type)}" for field in kind) + "}"
    if pa.types.is_dictionary(kind):
        return describe_type(kind.value_type)
    if pa.types.is_integer(kind):
        return "integer"
    return type_family(kind)


def kind_of(description: str) -> ColumnKind:
    """Derive a column's kind from its ``describe_type`` text, which is stored with datasets."""
    if description in _SIMPLE_KINDS:
        return _SIMPLE_KINDS[description]
    if description.startswith("list<object{"):
        fields = _fields_of(description.removeprefix("list<").removesuffix(">"))
        return (
            ColumnKind.MESSAGES if fields.get("role") == "text" and "content" in fields else ColumnKind.OTHER
        )
    return ColumnKind.OBJECT if description.startswith("object{") else ColumnKind.OTHER


def _fields_of(description: str) -> dict[str, str]:
    """Name → type of an object's own fields, not of those inside of them."""
    fields: dict[str, str] = {}
    depth = start = 0
    inside = description.removeprefix("object{").removesuffix("}") + ", "
    for position, character in enumerate(inside):
        depth += (character in "<{") - (character in ">}")
        if depth == 0 and inside.startswith(", ", position):
            name, _, type_ = inside[start:position].strip().partition(": ")
            fields[name] = type_
            start = position + 1
    return fields
