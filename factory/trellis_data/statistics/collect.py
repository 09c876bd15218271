"""The statistics of Parquet files in one streaming pass."""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trellis_data.batching import read_tables
from trellis_data.layout import Batch, Layout
from trellis_data.pipeline.shards import conform
from trellis_data.pipeline.units import schema_of
from trellis_data.row_texts import is_conversation, is_text, row_texts, texts_of
from trellis_data.statistics.duplicates import DuplicateCount
from trellis_data.statistics.model import ColumnStatistics, Lengths, Statistics
from trellis_data.tokens import count_tokens, load_tokenizer
from trellis_data.versions.hashing import digest_rows

_BATCH_ROWS = 8192


@dataclass(frozen=True)
class Depth:
    """How much is looked at where looking at everything would take long."""

    #: Folder of a tokenizer; without one there are no lengths in tokens.
    tokenizer: Path | None = None
    #: Rows whose tokens are counted, drawn evenly.
    token_rows: int = 50_000
    #: Rows whose language is told, drawn evenly; 0 for none.
    language_rows: int = 2000
    duplicates: bool = True


@dataclass
class _Tools:
    """What is needed beside the rows."""

    tokenizer: Any = None
    languages: Any = None
    token_share: float = 1.0
    language_share: float = 1.0
    duplicates: DuplicateCount | None = None
    seen: int = field(default=0)


def summarise(
    splits: Mapping[str, Sequence[Path]],
    layout: Layout,
    depth: Depth | None = None,
    tick: Callable[[int], None] = lambda rows: None,  # noqa: ARG005 - nobody looks on
) -> Statistics:
    """Compute the statistics of some splits; ``tick`` receives the rows done and may raise to stop."""
    depth = depth or Depth()
    files = [path for paths in splits.values() for path in paths]
    schema = schema_of(files)
    total = sum(pq.read_metadata(path).num_rows for path in files)
    with tempfile.TemporaryDirectory(prefix="trellis-statistics-") as place:
        tools = _tools(depth, total, Path(place))
        whole = _of_batch(Batch(schema.empty_table(), layout), tools)
        for split, paths in splits.items():
            rows = 0
            for path in paths:
                with pq.ParquetFile(path) as file:
                    for read in read_tables(file, _BATCH_ROWS):
                        table = conform(read, schema)
                        whole = whole.merged(_of_batch(Batch(table, layout, tools.seen), tools))
                        tools.seen += table.num_rows
                        rows += table.num_rows
                        tick(table.num_rows)
            whole.splits[split] = rows
        whole.duplicates = tools.duplicates.finish() if tools.duplicates else None
    whole.roles = dict(sorted(whole.roles.items(), key=lambda item: -item[1]))
    whole.languages = dict(sorted(whole.languages.items(), key=lambda item: -item[1]))
    return whole


def _tools(depth: Depth, total: int, folder: Path) -> _Tools:
    tools = _Tools(
        token_share=min(1.0, depth.token_rows / max(1, total)),
        language_share=min(1.0, depth.language_rows / max(1, total)),
    )
    if depth.tokenizer:
        tools.tokenizer = load_tokenizer(depth.tokenizer)
    if depth.language_rows:
        from trellis_data.operators.language_detection import CODES, LanguageDetection

        tools.languages = LanguageDetection(sorted(CODES))
    if depth.duplicates:
        tools.duplicates = DuplicateCount(folder)
    return tools


def _of_batch(batch: Batch, tools: _Tools) -> Statistics:
    texts = row_texts(batch)
    if tools.duplicates and len(batch):
        tools.duplicates.add(digest_rows(batch.table)[0])
    frame = texts_of(batch)
    speakers = frame.filter(pl.col("speaker") != "")["speaker"].value_counts()
    tokens = None
    if tools.tokenizer:
        tokens = Lengths.of(count_tokens(tools.tokenizer, _drawn(texts, batch.start, tools.token_share)))
    languages: Counter[str] = Counter()
    if tools.languages and len(batch):
        drawn = _drawn(texts, batch.start, tools.language_share)
        if len(drawn):
            languages.update(tools.languages.detect(drawn).codes.tolist())
    return Statistics(
        rows=len(batch),
        format=batch.layout.format,
        columns=[_of_column(batch.table, name) for name in batch.table.column_names],
        characters=Lengths.of(texts.str.len_chars().to_numpy().astype(np.int64)),
        tokens=tokens,
        turns=Lengths.of(_turns(batch.table)),
        roles=dict(speakers.rows()),
        languages=dict(languages),
    )


def _of_column(table: pa.Table, name: str) -> ColumnStatistics:
    column = table.column(name)
    kind = column.type
    found = ColumnStatistics(
        name=name, type=str(kind), values=len(column) - column.null_count, nulls=column.null_count
    )
    if is_text(kind):
        stripped = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        found.empty = int(pc.sum(pc.equal(pc.utf8_length(stripped), 0)).as_py() or 0)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        found.empty = int(pc.sum(pc.equal(pc.list_value_length(column), 0)).as_py() or 0)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = column.drop_null().to_numpy().astype(float)
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            found.least, found.most = float(numbers.min()), float(numbers.max())
            found.total = float(numbers.sum())
    return found


def _turns(table: pa.Table) -> np.ndarray:
    """Count the turns of the first conversation of each row that has one."""
    for name in table.column_names:
        if is_conversation(table.column(name).type):
            lengths = pc.list_value_length(table.column(name)).drop_null()
            turns: np.ndarray = lengths.to_numpy().astype(np.int64)
            return turns
    return np.empty(0, dtype=np.int64)


def _drawn(texts: pl.Series, start: int, share: float) -> pl.Series:
    """Sample the texts of rows by their position: the same ones however rows are batched."""
    if share >= 1.0:
        return texts
    positions = np.arange(start, start + len(texts), dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = (positions + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return texts.filter(pl.Series((mixed >> np.uint64(11)).astype(float) / 2.0**53 < share))
