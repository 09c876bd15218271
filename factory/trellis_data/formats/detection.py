"""Which formats rows may have: candidates in order, each with how sure it is, why, and its columns."""

from collections.abc import Collection

import pyarrow as pa
from pydantic import Field
from trellis_contracts.recipe import DataFormat, Strict
from trellis_contracts.row_formats import FORMAT_ROLES, ColumnKind
from trellis_recipes.data.row_values import BadRow

from trellis_data.formats.rowwise import TURN_COLUMNS, RowConverter
from trellis_data.formats.shapes import MEANS, Reading, Shape
from trellis_data.formats.turns import is_wide
from trellis_data.reading.column_types import describe_type, kind_of
from trellis_data.row_texts import is_turns

#: What says most comes first; how sure a format is whose columns are there and whose rows can all be read.
_SURE: dict[Shape, float] = {
    Shape.VERL_RL: 0.99,
    Shape.SHAREGPT: 0.97,
    Shape.MESSAGES: 0.97,
    Shape.PREFERENCE: 0.95,
    Shape.UNPAIRED_PREFERENCE: 0.95,
    Shape.ALPACA: 0.95,
    Shape.PROMPT_ANSWER: 0.85,
    Shape.TEXT: 0.7,
}
#: What every row of a shape can be brought into: reading it whole is the test.
_PROBE: dict[Shape, Shape] = {
    Shape.PREFERENCE: Shape.PREFERENCE,
    Shape.UNPAIRED_PREFERENCE: Shape.UNPAIRED_PREFERENCE,
    Shape.TEXT: Shape.TEXT,
}
_SAMPLE_ROWS = 200
_MAX_EXAMPLES = 3


class Candidate(Strict):
    """A format that the rows may have."""

    shape: Shape
    format: DataFormat
    #: 0 to 1.
    confidence: float
    columns: dict[str, str]
    reasons: list[str] = Field(default_factory=list)


def detect(table: pa.Table) -> list[Candidate]:
    """Detect the formats that some rows' columns may have, the most likely first; empty if there is none."""
    sample = table.slice(0, _SAMPLE_ROWS)
    rows = sample.to_pylist()
    found = []
    for shape in _SURE:
        columns = shape_columns(shape, table.schema)
        if columns is not None:
            found.append(_judge(Reading(shape, columns), rows, table.schema))
    found = [each for each in found if each.confidence > 0]
    return sorted(found, key=lambda each: -each.confidence)


def shape_columns(shape: Shape, schema: pa.Schema) -> dict[str, str] | None:
    """Find the columns for a shape's roles by their usual names; None if one is missing or unsuitable."""
    kinds = {each.name: kind_of(describe_type(each.type)) for each in schema}
    if shape is Shape.SHAREGPT:
        name = next((each for each in TURN_COLUMNS if each in kinds), None)
        return {"messages": name} if name and is_turns(schema.field(name).type) else None
    if shape is Shape.ALPACA:
        wanted = {"prompt": "instruction", "answer": "output"}
        is_there = all(kinds.get(name) is ColumnKind.TEXT for name in wanted.values())
        return (wanted | ({"input": "input"} if "input" in kinds else {})) if is_there else None
    columns = find_columns(MEANS[shape], kinds)
    if columns is None or not is_plausible(MEANS[shape], columns, schema):
        return None
    return None if shape is Shape.PROMPT_ANSWER and shape_columns(Shape.ALPACA, schema) else columns


def _judge(reading: Reading, rows: list[dict[str, object]], schema: pa.Schema) -> Candidate:
    """Check how many of the rows can be read as that format, and why the others cannot."""
    probe = RowConverter(reading, _PROBE.get(reading.shape, Shape.MESSAGES), "whole")
    problems: list[str] = []
    for row in rows:
        try:
            probe.convert(row)
        except BadRow as error:
            problems.append(str(error))
    share = 1 - len(problems) / len(rows) if rows else 0.5
    reasons = [_explain(reading)]
    if rows:
        reasons.append(f"{len(rows) - len(problems)} of the first {len(rows)} rows match.")
    reasons += list(dict.fromkeys(f"Mismatch: {each}." for each in problems))[:_MAX_EXAMPLES]
    if reading.shape is Shape.MESSAGES and any(is_wide(each.type) for each in schema):
        reasons.append("Messages can contain names or tool calls.")
    return Candidate(
        shape=reading.shape,
        format=MEANS[reading.shape],
        confidence=round(_SURE[reading.shape] * share, 3),
        columns=reading.columns,
        reasons=reasons,
    )


def _explain(reading: Reading) -> str:
    columns = reading.columns
    match reading.shape:
        case Shape.SHAREGPT:
            return f"Detected: turns with from and value in column '{columns['messages']}'."
        case Shape.ALPACA:
            return "Detected: columns instruction and output" + (" and input." if "input" in columns else ".")
        case _:
            return (
                "Detected: " + ", ".join(f"{role} in column '{name}'" for role, name in columns.items()) + "."
            )


def find_columns(data_format: DataFormat, kinds: dict[str, ColumnKind]) -> dict[str, str] | None:
    """Find the columns for a format's roles by their usual names; None if one is missing or unsuitable.

    The first of the usual names that is there counts, fit or not. ``system`` and ``input`` go
    without saying: readers look for them beside a prompt.
    """
    columns = {}
    for role in FORMAT_ROLES[data_format]:
        name = first_of(kinds, role.usual_columns)
        if name is not None and kinds[name] in role.kinds:
            if role.name not in ("system", "input"):
                columns[role.name] = name
        elif not role.is_optional:
            return None
    return columns or None


def is_plausible(data_format: DataFormat, columns: dict[str, str], schema: pa.Schema) -> bool:
    """Return whether columns with the right names and kinds are likely to mean what the format says."""
    kinds = {role: kind_of(describe_type(schema.field(name).type)) for role, name in columns.items()}
    if data_format is DataFormat.PREFERENCE:
        are_texts = ColumnKind.TEXT in (kinds["chosen"], kinds["rejected"])
        return "prompt" in columns or not are_texts
    if data_format is DataFormat.UNPAIRED_PREFERENCE:
        # Numbers and texts named "label" are mostly classes; a person may still say what they are.
        is_whole = pa.types.is_integer(schema.field(columns["label"]).type)
        return kinds["label"] is ColumnKind.BOOLEAN or (is_whole and columns["completion"] == "completion")
    return True


def first_of(names: Collection[str], wanted: tuple[str, ...]) -> str | None:
    """Return the first of the wanted names that is in ``names``."""
    return next((name for name in wanted if name in names), None)


def find_column(schema: pa.Schema, reading: Reading, role: str) -> str | None:
    """Find the column of a role: the one that was named, else the first with a usual name."""
    if role in reading.columns:
        return reading.columns[role]
    if reading.shape is Shape.SHAREGPT:
        return first_of(schema.names, TURN_COLUMNS if role == "messages" else (role,))
    roles = FORMAT_ROLES[MEANS[reading.shape]]
    return next((first_of(schema.names, each.usual_columns) for each in roles if each.name == role), None)


def reading_of(schema: pa.Schema, data_format: DataFormat, columns: dict[str, str]) -> Reading | None:
    """Choose how to read rows of a known format; if it is unknown, judge by the columns."""
    if data_format is not DataFormat.UNKNOWN:
        shape = next(shape for shape, meant in MEANS.items() if meant is data_format and shape in _ORDINARY)
        return Reading(shape, columns)
    for shape in _SURE:
        found = shape_columns(shape, schema)
        if found is not None:
            return Reading(shape, found)
    return None


#: The shape of each format where nothing says more.
_ORDINARY = frozenset(
    {
        Shape.MESSAGES,
        Shape.PROMPT_ANSWER,
        Shape.PREFERENCE,
        Shape.UNPAIRED_PREFERENCE,
        Shape.VERL_RL,
        Shape.TEXT,
    }
)
