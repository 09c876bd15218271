"""Writes the Parquet files that the engines read, from the datasets of a job.

Rows are read and written in batches, so that a dataset may be larger than memory.
"""

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.attempt import MIX_FILE, PREPARED_FOLDER, TRAIN_FILE, VALIDATION_FILE
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import DataSource, JobSpec
from trellis_recipes.data.conversion import Convert, NoConversion, Place, choose_conversion, rename
from trellis_recipes.data.row_values import WEIGHT, BadRow

from trellis_train.agents.tooluse.training.row_selection import RECIPE as CHOOSING_RECIPE
from trellis_train.agents.tooluse.training.row_selection import (
    BadSelection,
    NothingSelected,
    choose_rows,
    count_kinds,
    describe_row,
)
from trellis_train.agents.tooluse.training.sampled_pairs import RECIPE as SAMPLING_RECIPE
from trellis_train.agents.tooluse.training.sampled_pairs import TRAINED_SPLIT, BadSampling, sample_pairs
from trellis_train.data.message_weights import WEIGHED_MESSAGES
from trellis_train.data.sources import list_groups, read_rows, unite_schemas

logger = logging.getLogger(__name__)
BATCH_ROWS = 2048

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
_RL_SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", _MESSAGES),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct([("index", pa.int64()), ("split", pa.string()), ("question", pa.string())]),
        ),
    ]
)
#: The columns of each form, as the trainers read them (preferences: TRL's conversational form).
SCHEMAS = {
    DataFormat.MESSAGES: pa.schema([("messages", _MESSAGES)]),
    DataFormat.VERL_RL: _RL_SCHEMA,
    DataFormat.TEXT: pa.schema([("text", pa.string())]),
    DataFormat.PREFERENCE: pa.schema([("prompt", _MESSAGES), ("chosen", _MESSAGES), ("rejected", _MESSAGES)]),
    DataFormat.UNPAIRED_PREFERENCE: pa.schema(
        [("prompt", _MESSAGES), ("completion", _MESSAGES), ("label", pa.bool_())]
    ),
}


#: Codes of ``BadData``.
UNUSABLE, EMPTY = "rows_unusable", "dataset_empty"
NOTHING_LEFT, UNREADABLE = "no_usable_rows", "dataset_unreadable"


class BadData(ValueError):
    """A dataset does not suit the job; the message names the row and says why."""

    def __init__(self, message: str, code: str = UNUSABLE) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class PreparedData:
    """The files that were written, and how many rows each holds."""

    train_path: Path
    train_rows: int
    validation_path: Path | None
    validation_rows: int


def prepare(
    spec: JobSpec,
    out_dir: str | Path | None = None,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    is_trained: bool = True,
) -> PreparedData:
    """Write training and validation files into ``out_dir`` (default: the attempt's ``prepared`` folder).

    Without a validation dataset the last ``validation_rows`` rows (a parameter) are held out; they are rows
    of the dataset, so that what one of them becomes lies on one side. Counts are of rows written.
    Prompts that are too long are left to verl, which knows the tokenizer. Rows that are not to be trained
    on (``is_trained``) are not noted for the replay of later jobs. Raises ``BadData``, and
    ``SamplingStopped`` where ``is_stopped`` holds while the model is sampled for its pairs.
    """
    if spec.train_data is None or spec.row_format is None:
        raise BadData("The job has no training data.")
    form = spec.row_format
    folder = Path(out_dir) if out_dir is not None else Path(spec.attempt_dir) / PREPARED_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    total = _count_rows(spec.train_data)
    held_out = 0 if spec.validation_data else int(spec.params.get("validation_rows") or 0)
    if held_out >= total:
        raise BadData(
            f"Cannot hold out {held_out} rows for validation: the dataset only has {total}.", NOTHING_LEFT
        )
    train_path, validation_path = folder / TRAIN_FILE, folder / VALIDATION_FILE
    kept = total - held_out

    def write(source: DataSource, target: Path, split: str, start: int, stop: int) -> int:
        if spec.recipe == SAMPLING_RECIPE and source.format is DataFormat.VERL_RL:
            return _convert_sampled(spec, source, target, split, range(start, stop), is_stopped)
        return _convert(form, source, target, split, start, stop)

    if spec.recipe == CHOOSING_RECIPE:
        train_rows = _convert_chosen(spec, spec.train_data, train_path, kept, is_trained=is_trained)
    else:
        train_rows = write(spec.train_data, train_path, TRAINED_SPLIT, 0, kept)
    validation_rows = 0
    if spec.validation_data is not None:
        count = _count_rows(spec.validation_data)
        validation_rows = write(spec.validation_data, validation_path, "validation", 0, count)
    elif held_out:
        validation_rows = write(spec.train_data, validation_path, "validation", kept, total)
    return PreparedData(train_path, train_rows, validation_path if validation_rows else None, validation_rows)


def _convert_chosen(spec: JobSpec, source: DataSource, target: Path, stop: int, *, is_trained: bool) -> int:
    """Write the rows that an agent's parameters choose for supervised training; all are held in memory."""
    convert = _choose_conversion(DataFormat.MESSAGES, source)
    rows = []
    for first, batch in _read(source, 0, stop):
        for index, row in enumerate(batch, start=first):
            try:
                (converted,) = convert(row, Place(index, "train"))
                rows.append(describe_row(row, converted["messages"], f"{source.sha256[:12]}-{index}"))
            except (BadRow, BadSelection) as error:
                raise BadData(f"Row {index + 1} of dataset {source.dataset_id}: {error}.") from error
    try:
        chosen = choose_rows(rows, spec, is_kept=is_trained)
    except BadSelection as error:
        code = NOTHING_LEFT if isinstance(error, NothingSelected) else UNUSABLE
        raise BadData(f"Cannot select rows of dataset {source.dataset_id}: {error}.", code) from error
    mix = {
        "rows": len(chosen.rows),
        "task_types": count_kinds(chosen.rows),
        "dataset_rows": len(rows),
        "left_out_rows": len(rows) - len(chosen.new),
        "replayed_rows": len(chosen.replayed),
    }
    target.with_name(MIX_FILE).write_text(json.dumps(mix))
    return _write_rows([{"messages": row["messages"]} for row in chosen.rows], DataFormat.MESSAGES, target)


def _convert_sampled(
    spec: JobSpec,
    source: DataSource,
    target: Path,
    split: str,
    rows: range,
    is_stopped: Callable[[], bool],
) -> int:
    """Write pairs of the model's own responses to the prompts in ``rows``; return how many there are."""
    prompts = target.with_name(f"{split}-prompts.parquet")
    _convert(DataFormat.VERL_RL, source, prompts, split, rows.start, rows.stop)
    try:
        pairs = sample_pairs(spec, prompts, split, is_stopped)
    except BadSampling as error:
        raise BadData(f"Prompts of dataset {source.dataset_id}: {error}.") from error
    if not pairs:
        logger.warning(
            "Nothing is measured in training: none of the %d prompts for validation has two responses with"
            " different rewards.",
            len(rows),
        )
    return _write_rows(pairs, DataFormat.PREFERENCE, target)


def _write_rows(rows: list[dict[str, Any]], form: DataFormat, target: Path) -> int:
    """Write rows that are in memory; return how many there are."""
    draft = target.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pylist(rows, SCHEMAS[form]), draft)
    os.replace(draft, target)
    return len(rows)


def _choose_conversion(form: DataFormat, source: DataSource) -> Convert:
    try:
        return choose_conversion(source.format, form, source.columns)
    except NoConversion as error:
        raise BadData(str(error)) from error


def _convert(form: DataFormat, source: DataSource, target: Path, split: str, start: int, stop: int) -> int:
    """Convert rows ``start`` to ``stop`` of the dataset into the target file; how many it then holds."""
    convert = _choose_conversion(form, source)
    schema = _choose_schema(form, source)
    # Under another name until it is complete: an attempt may be killed here.
    draft = target.with_suffix(".tmp")
    count = 0
    with pq.ParquetWriter(draft, schema) as writer:
        for first, batch in _read(source, start, stop):
            converted: list[dict[str, Any]] = []
            for index, row in enumerate(batch, start=first):
                try:
                    converted += convert(row, Place(index, split))
                except BadRow as error:
                    message = f"Row {index + 1} of dataset {source.dataset_id}: {error}."
                    raise BadData(message) from error
            try:
                writer.write_table(pa.Table.from_pylist(converted, schema=schema))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                where = f"Rows {first + 1} to {first + len(batch)} of dataset {source.dataset_id}"
                raise BadData(f"{where}: {error}") from error
            count += len(converted)
    os.replace(draft, target)
    return count


def _choose_schema(form: DataFormat, source: DataSource) -> pa.Schema:
    """Choose the columns to write; rows already in verl's format keep their columns."""
    if form is DataFormat.MESSAGES and source.format is DataFormat.MESSAGES and _has_weights(source):
        return pa.schema([("messages", WEIGHED_MESSAGES)])
    if form is not DataFormat.VERL_RL or source.format is not DataFormat.VERL_RL:
        return SCHEMAS[form]
    with _reading(source):
        schema = unite_schemas(source)
    fields = rename({field.name: field for field in schema}, source.columns)
    return pa.schema([field.with_name(name) for name, field in fields.items()])


def _has_weights(source: DataSource) -> bool:
    """Tell whether turns of the rows say how much they count."""
    with _reading(source):
        schema = unite_schemas(source)
    column = source.columns.get("messages", "messages")
    kind = schema.field(column).type if column in schema.names else pa.null()
    is_turns = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    return is_turns and kind.value_type.get_field_index(WEIGHT) >= 0


def _read(source: DataSource, start: int, stop: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield rows ``start`` to ``stop`` in batches, each with the index of its first row."""
    with _reading(source):
        yield from read_rows(source, start, stop, BATCH_ROWS)


def _count_rows(source: DataSource) -> int:
    with _reading(source):
        count = sum(group.rows for group in list_groups(source))
    if count == 0:
        raise BadData(f"Dataset {source.dataset_id} is empty.", EMPTY)
    return count


@contextmanager
def _reading(source: DataSource) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadData(f"Dataset {source.dataset_id} cannot be read: {error}", UNREADABLE) from error
