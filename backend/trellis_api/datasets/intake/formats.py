"""Which training format the columns have, by which columns, and the rows that break it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat
from trellis_contracts.rows import ANSWER_COLUMNS, PROMPT_COLUMNS, ROLES

from trellis_api.datasets.intake.columns import describe_type, is_list, is_text
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


def detect_format(schema: pa.Schema) -> Detection:
    """The first format whose columns are all there; UNKNOWN with what was missing otherwise."""
    kinds = {column.name: column.type for column in schema}
    for detect in (_detect_verl, _detect_messages, _detect_preference, _detect_prompt_answer, _detect_text):
        if detection := detect(kinds):
            return detection
    return Detection(DataFormat.UNKNOWN, _why_unknown(kinds))


def _detect_verl(kinds: dict[str, pa.DataType]) -> Detection | None:
    if not {"data_source", "prompt", "reward_model"} <= kinds.keys():
        return None
    if not (_is_messages(kinds["prompt"]) and pa.types.is_struct(kinds["reward_model"])):
        return None
    columns = {name: name for name in ("data_source", "prompt", "reward_model")}
    return Detection(DataFormat.VERL_RL, "Columns data_source, prompt (messages) and reward_model.", columns)


def _detect_messages(kinds: dict[str, pa.DataType]) -> Detection | None:
    if "messages" not in kinds or not _is_messages(kinds["messages"]):
        return None
    return Detection(
        DataFormat.MESSAGES, "Column messages: a list of {role, content}.", {"messages": "messages"}
    )


def _detect_preference(kinds: dict[str, pa.DataType]) -> Detection | None:
    pair = [kinds.get("chosen"), kinds.get("rejected")]
    if not all(kind is not None and (is_text(kind) or _is_messages(kind)) for kind in pair):
        return None
    columns = {"chosen": "chosen", "rejected": "rejected"}
    if prompt := _first(kinds, PROMPT_COLUMNS):
        columns["prompt"] = prompt
    return Detection(DataFormat.PREFERENCE, "Columns chosen and rejected.", columns)


def _detect_prompt_answer(kinds: dict[str, pa.DataType]) -> Detection | None:
    prompt, answer = _first(kinds, PROMPT_COLUMNS), _first(kinds, ANSWER_COLUMNS)
    if not prompt or not answer or _why_no_prompt(kinds[prompt]) or _why_no_answer(kinds[answer]):
        return None
    return Detection(
        DataFormat.PROMPT_ANSWER,
        f"Column {prompt} is the prompt and column {answer} the answer.",
        {"prompt": prompt, "answer": answer},
    )


def _why_no_prompt(kind: pa.DataType) -> str | None:
    return None if is_text(kind) or _is_messages(kind) else "neither text nor messages"


def _why_no_answer(kind: pa.DataType) -> str | None:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return None if is_text(kind) or is_number else "neither text nor a number"


def _first(kinds: dict[str, pa.DataType], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in kinds), None)


def _detect_text(kinds: dict[str, pa.DataType]) -> Detection | None:
    if "text" not in kinds or not is_text(kinds["text"]):
        return None
    return Detection(DataFormat.TEXT, "Column text holds plain text.", {"text": "text"})


def _is_messages(kind: pa.DataType) -> bool:
    if not is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    inner = {item.name: item.type for item in kind.value_type}
    return "content" in inner and is_text(inner.get("role", pa.null()))


def _why_unknown(kinds: dict[str, pa.DataType]) -> str:
    if "messages" in kinds:
        found = describe_type(kinds["messages"])[:120]
        return f"Column messages is {found}, not a list of objects with role and content."
    if "conversations" in kinds:
        return "Column conversations looks like ShareGPT; rename it to messages with role and content."
    prompt, answer = _first(kinds, PROMPT_COLUMNS), _first(kinds, ANSWER_COLUMNS)
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
            if _is_messages(column.type):
                found += _bad_messages(position, name, column)
            elif column.null_count:
                nulls = pc.indices_nonzero(pc.is_null(column)).to_pylist()
                found += [BadValue(position + index, name, "missing or null") for index in nulls]
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
