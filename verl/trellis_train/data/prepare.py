"""Writes the Parquet files that the engines read, from the datasets of a job.

Rows are read and written in batches, so that a dataset may be larger than memory.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.attempt import PREPARED_FOLDER, TRAIN_FILE, VALIDATION_FILE
from trellis_contracts.recipe import DataFormat, Engine
from trellis_contracts.spec import DataSource, JobSpec

from trellis_train.data import rows
from trellis_train.data.rows import BadRow, Row

BATCH_ROWS = 2048

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
RL_SCHEMA = pa.schema(
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
SFT_SCHEMA = pa.schema([("messages", _MESSAGES)])
#: Converts a row, given its index in the dataset and its split.
Convert = Callable[..., Mapping[str, Any]]


class BadData(ValueError):
    """A dataset does not suit the job; the message names the row and says why."""


@dataclass(frozen=True)
class PreparedData:
    """The files that were written, and how many rows each holds."""

    train_path: Path
    train_rows: int
    validation_path: Path | None
    validation_rows: int


def prepare(spec: JobSpec, out_dir: str | Path | None = None) -> PreparedData:
    """Write training and validation files into ``out_dir`` (default: the attempt's ``prepared`` folder).

    Without a validation dataset the last ``validation_rows`` rows (a knob) are held out.
    Prompts that are too long are left to verl, which knows the tokenizer. Raises ``BadData``.
    """
    folder = Path(out_dir) if out_dir is not None else Path(spec.attempt_dir) / PREPARED_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    total = _count_rows(spec.train_data)
    held_out = 0 if spec.validation_data else int(spec.params.get("validation_rows") or 0)
    if held_out >= total:
        raise BadData(f"{held_out} rows cannot be held out for validation: the dataset has {total}.")
    train_path, validation_path = folder / TRAIN_FILE, folder / VALIDATION_FILE
    train_rows = _convert(spec.engine, spec.train_data, train_path, "train", 0, total - held_out)
    validation_rows = 0
    if spec.validation_data is not None:
        count = _count_rows(spec.validation_data)
        validation_rows = _convert(spec.engine, spec.validation_data, validation_path, "validation", 0, count)
    elif held_out:
        start = total - held_out
        validation_rows = _convert(spec.engine, spec.train_data, validation_path, "validation", start, total)
    return PreparedData(train_path, train_rows, validation_path if validation_rows else None, validation_rows)


def _convert(engine: Engine, source: DataSource, target: Path, split: str, start: int, stop: int) -> int:
    """Convert rows ``start`` to ``stop`` of the dataset into the target file; how many there were."""
    schema, convert = _choose_conversion(engine, source)
    # Under another name until it is complete: an attempt may be killed here.
    draft = target.with_suffix(".tmp")
    count = 0
    with pq.ParquetWriter(draft, schema) as writer:
        for first, batch in _read(source, start, stop):
            converted = []
            for offset, row in enumerate(batch):
                try:
                    converted.append(convert(row, index=first + offset, split=split))
                except BadRow as error:
                    message = f"Row {first + offset + 1} of dataset {source.dataset_id}: {error}."
                    raise BadData(message) from error
            try:
                writer.write_table(pa.Table.from_pylist(converted, schema=schema))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                where = f"Rows {first + 1} to {first + len(batch)} of dataset {source.dataset_id}"
                raise BadData(f"{where}: {error}") from error
            count += len(converted)
    os.replace(draft, target)
    return count


def _choose_conversion(engine: Engine, source: DataSource) -> tuple[pa.Schema, Convert]:
    if engine is Engine.VERL_SFT:
        readers = {
            DataFormat.MESSAGES: rows.messages_of,
            DataFormat.PROMPT_ANSWER: rows.prompt_answer_to_messages,
        }
        if source.format in readers:
            return SFT_SCHEMA, partial(_as_conversation, read=readers[source.format])
    elif source.format is DataFormat.VERL_RL:
        return _open(source).schema_arrow, _as_it_is
    else:
        pairs = {
            DataFormat.MESSAGES: rows.messages_to_rl,
            DataFormat.PROMPT_ANSWER: rows.prompt_answer_to_rl,
        }
        if source.format in pairs:
            return RL_SCHEMA, partial(_as_rl_row, read=pairs[source.format])
    raise BadData(f"Rows of the format '{source.format}' cannot be used for {engine}.")


def _as_conversation(row: Row, *, read: Callable[[Row], Any], index: int, split: str) -> dict[str, Any]:
    del index, split
    return {"messages": read(row)}


def _as_rl_row(row: Row, *, read: Callable[[Row], Any], index: int, split: str) -> dict[str, Any]:
    prompt, truth = read(row)
    return rows.rl_row(prompt, truth, index=index, split=split)


def _as_it_is(row: Row, *, index: int, split: str) -> Row:
    del index, split
    rows.check_verl_rl(row)
    return row


def _read(source: DataSource, start: int, stop: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Rows ``start`` to ``stop`` in batches, each with the index of its first row."""
    file = _open(source)
    groups = list(range(file.metadata.num_row_groups))
    first = 0
    # Held-out rows lie at the end: what comes before them need not be decoded to find them.
    while groups and first + file.metadata.row_group(groups[0]).num_rows <= start:
        first += file.metadata.row_group(groups.pop(0)).num_rows
    for batch in file.iter_batches(batch_size=BATCH_ROWS, row_groups=groups):
        begin, end = max(start - first, 0), min(stop - first, batch.num_rows)
        if begin < end:
            yield first + begin, batch.slice(begin, end - begin).to_pylist()
        first += batch.num_rows
        if first >= stop:
            return


def _open(source: DataSource) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(source.path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadData(f"Dataset {source.dataset_id} cannot be read: {error}") from error


def _count_rows(source: DataSource) -> int:
    count: int = _open(source).metadata.num_rows
    if count == 0:
        raise BadData(f"Dataset {source.dataset_id} is empty.")
    return count
