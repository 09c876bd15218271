"""Which training format the columns have, by which columns, and the rows that break it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat
from trellis_contracts.rows import (
    ANSWER_COLUMNS,
    PROMPT_COLUMNS,
    ROLES,
    ColumnKind,
)
from trellis_data.formats.detection import find_columns, first_of, is_plausible
from trellis_data.reading.columns import describe_type, is_text, kind_of

from trellis_api.datasets.intake.problems import MAX_PROBLEMS


@dataclass(frozen=True)
class Detection:
    """A format, the sentence that says why, and the columns that play its roles."""

    format: DataFormat
    reason: str
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BadValue:
    """A value that breaks the format, by the row's position (from 0) in the stored file."""

    position: int
    column: str
    reason: str


#: The first that fits counts: what says most comes first.
_ORDER = (
    DataFormat.VERL_RL,
    DataFormat.MESSAGES,
    DataFormat.PREFERENCE,
    DataFormat.UNPAIRED_PREFERENCE,
    DataFormat.PROMPT_ANSWER,
    DataFormat.TEXT,
)


def detect_format(schema: pa.Schema) -> Detection:
    """The first format whose columns are all there; UNKNOWN with what was missing otherwise."""
    types = {column.name: column.type for column in schema}
    kinds = {name: kind_of(describe_type(type_)) for name, type_ in types.items()}
    for data_format in _ORDER:
        columns = find_columns(data_format, kinds)
        if columns is not None and is_plausible(data_format, columns, schema):
            return Detection(data_format, _explain(data_format, columns), columns)
    return Detection(DataFormat.UNKNOWN, _why_unknown(types))


def _explain(data_format: DataFormat, columns: dict[str, str]) -> str:
    if data_format is DataFormat.VERL_RL:
        return "Columns data_source, prompt (messages) and reward_model."
    if data_format is DataFormat.MESSAGES:
        return "Column messages: a list of {role, content}."
    if data_format is DataFormat.PREFERENCE:
        return "Columns chosen and rejected."
    if data_format is DataFormat.UNPAIRED_PREFERENCE:
        return f"Column {columns['label']} says whether column {columns['completion']} is a wanted answer."
    if data_format is DataFormat.TEXT:
        return f"Column {columns['text']} holds plain text."
    return f"Column {columns['prompt']} is the prompt and column {columns['answer']} the answer."


def _why_no_prompt(kind: pa.DataType) -> str | None:
    is_fit = kind_of(describe_type(kind)) in (ColumnKind.TEXT, ColumnKind.MESSAGES)
    return None if is_fit else "neither text nor messages"


def _why_no_answer(kind: pa.DataType) -> str | None:
    is_fit = kind_of(describe_type(kind)) in (ColumnKind.TEXT, ColumnKind.NUMBER)
    return None if is_fit else "neither text nor a number"


def _why_unknown(kinds: dict[str, pa.DataType]) -> str:
    if "messages" in kinds:
        found = describe_type(kinds["messages"])[:120]
        return f"Column messages is {found}, not a list of objects with role and content."
    if "conversations" in kinds:
        return "Column conversations looks like ShareGPT; rename it to messages with role and content."
    prompt, answer = first_of(kinds, PROMPT_COLUMNS), first_of(kinds, ANSWER_COLUMNS)
    if "chosen" in kinds and "rejected" in kinds and not prompt:
        return "Columns chosen and rejected are no whole conversations, and no column is the prompt."
    if prompt and answer:
        name, reason = prompt, _why_no_prompt(kinds[prompt])
        if not reason:
            name, reason = answer, _why_no_answer(kinds[answer])
        return f"Column {name} is {describe_type(kinds[name])[:120]}: {reason}."
    if prompt and not answer:
        return (
            f"Column {prompt} looks like a prompt, but no column is the answer ({', '.join(ANSWER_COLUMNS)})."
        )
    if answer and not prompt:
        known = ", ".join(PROMPT_COLUMNS)
        return f"Column {answer} looks like an answer, but no column is the prompt ({known})."
    names = ", ".join(list(kinds)[:8])
    return f"No known format has the columns {names}."[:400]


def find_bad_values(path: Path, detection: Detection) -> list[BadValue]:
    """The first rows that lack what their format needs: a null prompt, a message without a role."""
    found: list[BadValue] = []
    for position, batch in _read_columns(path, detection):
        for name in dict.fromkeys(detection.columns.values()):
            column = batch.column(name)
            if kind_of(describe_type(column.type)) is ColumnKind.MESSAGES:
                found += _bad_messages(position, name, column)
            elif column.null_count:
                nulls = pc.indices_nonzero(pc.is_null(column)).to_pylist()
                found += [BadValue(position + index, name, "missing or null") for index in nulls]
            if name == detection.columns.get("label") and pa.types.is_integer(column.type):
                found += _bad_labels(position, name, column)
        if len(found) >= MAX_PROBLEMS:
            break
    return sorted(found, key=lambda bad: bad.position)[:MAX_PROBLEMS]


def count_empty_values(path: Path, detection: Detection) -> dict[str, int]:
    """Rows with an empty text, for each column that plays a role."""
    counts: dict[str, int] = {}
    for _, batch in _read_columns(path, detection):
        for name in dict.fromkeys(detection.columns.values()):
            column = batch.column(name)
            if is_text(column.type):
                blank = pc.equal(pc.utf8_trim_whitespace(pc.cast(column, pa.large_string())), "")
                counts[name] = counts.get(name, 0) + (pc.sum(blank).as_py() or 0)
    return {name: count for name, count in counts.items() if count}


def _read_columns(path: Path, detection: Detection) -> Iterator[tuple[int, pa.RecordBatch]]:
    names = list(dict.fromkeys(detection.columns.values()))
    if not names:
        return
    position = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=4096, columns=names):
            yield position, batch
            position += batch.num_rows


def _bad_messages(start: int, name: str, column: pa.Array) -> list[BadValue]:
    found = []
    for index, messages in enumerate(column.to_pylist()):
        if reason := _why_bad(messages):
            found.append(BadValue(start + index, name, reason))
    return found


def _bad_labels(start: int, name: str, column: pa.Array) -> list[BadValue]:
    is_flag = pc.is_in(column, value_set=pa.array([0, 1, None], type=column.type))
    strange = pc.indices_nonzero(pc.invert(is_flag)).to_pylist()
    return [BadValue(start + index, name, f"{column[index]} is neither 0 nor 1") for index in strange]


def _why_bad(messages: list[dict[str, Any]] | None) -> str | None:
    if not messages:
        return "no messages"
    for number, message in enumerate(messages, start=1):
        if message is None or message.get("role") is None:
            return f"message {number} has no role"
        if message["role"] not in ROLES:
            known = ", ".join(sorted(ROLES))
            return f"message {number} has the role '{message['role'][:40]}'; known are {known}"
        if message.get("content") is None and not message.get("tool_calls"):
            return f"message {number} has no content"
    return None
