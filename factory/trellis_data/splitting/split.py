"""Splitting rows into parts such as train, validation and test, by seed and stable when rows are appended.

What stays where it was when rows are appended at the end and the dataset is split again with the same seed:

- random, grouped with shares: every row. The hash of its text (or group) with the seed alone decides; rows of
  the same text are never parted.
  Rows without a group, or with a blank one, go by their text.
- stratified with shares: every row. Its class and how many rows of the class come before it decide. Each
  class is filled evenly, to a few rows; that deals equal texts out like others, so deduplicate before.
  Classes of scores are quantiles, which new rows move.
- temporal with shares: a row may move to an older part only, as newer rows come.
- semantic with shares: the first row of a cluster decides for all. A row may move where a new row joins two
  clusters (alike in words, or in meaning).
- numbers of rows: a part keeps the rows with the smallest hashes, so that no more rows move than were added
  (temporal: the newest rows).
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
from trellis_contracts.recipe import Text

from trellis_data.dedup import encoder
from trellis_data.dedup.bands import choose_bands
from trellis_data.dedup.number_columns import Column, ColumnWriter
from trellis_data.dedup.sources import TextBuffers
from trellis_data.layout import Batch, Layout
from trellis_data.operator import GlobalOperator, OperatorProblem
from trellis_data.outcome import Outcome, kept_all
from trellis_data.row_texts import row_texts
from trellis_data.splitting import assigning
from trellis_data.splitting.parameters import COLUMN, SplitParams

_PARTS_FILE = "parts.npy"
_PERMUTATIONS = 128


class Split(GlobalOperator):
    """Writes the part of every row into the column ``split``."""

    id: ClassVar[str] = "split"
    title: ClassVar[Text] = Text(en="Split", zh="划分数据集")
    help: ClassVar[Text] = Text(
        en="Assigns each row to a training, validation or test split in the 'split' column.",
        zh="在 split 列中写明每一行用于训练、验证还是测试。",
    )
    group: ClassVar[Any] = "split"
    Params: ClassVar[Any] = SplitParams

    params: SplitParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: ARG002 - all layouts can be split
        if self._compares_meaning:
            encoder.check_installed()
        name = self.params.by
        if name is None or self.params.mode in ("random", "semantic"):
            return
        if name not in schema.names:
            raise OperatorProblem(
                "column_missing", f"No column '{name}'; available: {', '.join(schema.names)}."
            )
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise OperatorProblem("column_not_plain", f"Column '{name}' holds {kind}, no plain values.")

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        field = pa.field(COLUMN, pa.string())
        at = schema.get_field_index(COLUMN)
        return schema.append(field) if at < 0 else schema.set(at, field)

    def scan(self, batches: Iterator[Batch], folder: Path) -> None:
        with ColumnWriter(folder) as writer:
            sketcher = self._sketcher()
            for batch in batches:
                keys = self._keys(batch)
                writer.append("key", keys)
                if self.params.mode == "temporal":
                    writer.append("time", times_of(_values(batch, self.params.by)))
                elif self.params.mode == "stratified":
                    writer.append("score", _scores(_values(batch, self.params.by)))
                    writer.append("class", _hashes(_values(batch, self.params.by)))
                elif sketcher is not None:
                    texts = row_texts(batch, self.params.where, self.params.columns)
                    sketcher.write(writer, TextBuffers.of(texts))
                    if self._compares_meaning:
                        vectors, _ = encoder.encode_readable(texts)
                        writer.append("vectors", vectors)

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        keys = Column(scans, "key", np.uint64).whole()
        wanted = sum((self.params.counts or {}).values())
        if wanted > len(keys):
            raise OperatorProblem(
                "not_enough_rows", f"{wanted} rows are asked for, there are {len(keys)}; ask for fewer."
            )
        findings: dict[str, Any] = {}
        if self.params.mode == "temporal":
            times = Column(scans, "time", np.float64).whole()
            parts, begins = self._temporal(times)
            findings["begins"] = [value if np.isfinite(value) else None for value in begins]
            # They count as the oldest, which a person ought to know.
            findings["without_time"] = int(np.isnan(times).sum())
        elif self.params.mode == "stratified":
            parts = self._stratified(scans, keys)
        else:
            if self.params.mode == "semantic":
                keys = keys[self._clusters(scans)]
            _, sizes = np.unique(keys, return_counts=True)
            findings = {"groups": len(sizes), "largest_group": int(sizes.max(initial=0))}
            parts = self._by_key(keys)
        np.save(folder / _PARTS_FILE, parts)
        numbers = np.bincount(parts, minlength=len(self.params.names))
        return findings | {"parts": dict(zip(self.params.names, numbers.tolist(), strict=True))}

    def apply(self, batch: Batch, reduced: Path) -> Outcome:
        parts = np.load(reduced / _PARTS_FILE, mmap_mode="r")[batch.start : batch.start + len(batch)]
        names = pa.array(self.params.names, pa.string())
        column = names.take(pa.array(np.asarray(parts)))
        table = batch.table
        at = table.schema.get_field_index(COLUMN)
        field = pa.field(COLUMN, pa.string())
        table = table.append_column(field, column) if at < 0 else table.set_column(at, field, column)
        outcome = kept_all(table)
        numbers = np.bincount(parts, minlength=len(self.params.names)).tolist()
        outcome.counts.update(dict(zip(self.params.names, numbers, strict=True)))
        return outcome

    def _sketcher(self) -> Any:
        from trellis_data.dedup.minhash import Sketcher

        if self.params.mode != "semantic":
            return None
        return Sketcher(self.params.shingle, self._bands, self.context.seed)

    @property
    def _compares_meaning(self) -> bool:
        """Whether rows of one meaning stay together."""
        compare = self.params.compare
        asked = compare == "meaning" or (compare == "auto" and encoder.is_installed())
        return self.params.mode == "semantic" and asked

    @property
    def _bands(self) -> Any:
        return choose_bands(self.params.similarity, _PERMUTATIONS)

    def _keys(self, batch: Batch) -> np.ndarray:
        """Return the hash that decides a row's split: of its group, or of its text if it has no group."""
        from trellis_data.dedup import alphabet, kernels

        texts = TextBuffers.of(row_texts(batch, self.params.where, self.params.columns))
        _, folded = alphabet.tables()
        hashes = kernels.folded_hashes(texts.data, texts.offsets, alphabet.blanks(), folded)
        # A row without text goes by its position, which appending does not change.
        position = np.arange(batch.start, batch.start + len(batch), dtype=np.uint64)
        hashes = np.where(hashes == 0, assigning.mix(position, 0), hashes)
        if self.params.mode == "grouped":
            values = _values(batch, self.params.by)
            # A row that names no group is one by itself; so is one whose group is blank.
            nameless = values.cast(pl.String).str.strip_chars().fill_null("") == ""
            hashes = np.where(nameless.to_numpy(), hashes, _hashes(values))
        return assigning.mix(hashes, self.context.seed)

    def _by_key(self, keys: np.ndarray) -> np.ndarray:
        if self.params.counts is not None:
            return assigning.by_counts(keys, list(self.params.counts.values()))
        return self._ratios.of(assigning.lots(keys))

    def _stratified(self, scans: Sequence[Path], keys: np.ndarray) -> np.ndarray:
        strata = Column(scans, "class", np.uint64).whole()
        scores = Column(scans, "score", np.float64).whole()
        known = ~np.isnan(scores)
        if known.any():
            edges = np.quantile(scores[known], np.arange(1, self.params.buckets) / self.params.buckets)
            # From 1: rows without a score are the class 0.
            strata[known] = np.searchsorted(edges, scores[known], side="right") + 1
        if self.params.counts is not None:
            return assigning.by_counts_in_strata(strata, keys, list(self.params.counts.values()))
        return self._ratios.of(assigning.spread(strata, self.context.seed))

    def _temporal(self, times: np.ndarray) -> tuple[np.ndarray, list[float]]:
        if self.params.counts is None:
            return assigning.by_time(times, list(self.params.ratios.values()))
        numbers = list(self.params.counts.values())
        total = max(len(times), 1)
        return assigning.by_time(times, [1 - sum(numbers) / total, *(number / total for number in numbers)])

    def _clusters(self, scans: Sequence[Path]) -> np.ndarray:
        from trellis_data.dedup.lsh import NearDuplicates
        from trellis_data.dedup.nearest_neighbors import Vectors, join_close
        from trellis_data.dedup.union_find import flatten, join_pairs

        parents = NearDuplicates(scans, self.params.similarity, self._bands).join()
        if self._compares_meaning:
            vectors = Vectors(scans, encoder.SIZE)
            if len(vectors) != len(parents):
                raise OperatorProblem(
                    "vectors_differ",
                    f"{len(vectors)} of {len(parents)} rows have a vector; "
                    "is the sentence encoder installed on every machine?",
                )
            alike, _ = join_close(vectors, self.params.cosine, self.context.seed)
            joined = np.flatnonzero(alike != np.arange(len(alike)))
            join_pairs(parents, joined, alike[joined].astype(np.int64), np.ones(len(joined), dtype=bool))
            flatten(parents)
        return parents

    @property
    def _ratios(self) -> assigning.Ratios:
        return assigning.Ratios(np.asarray(list(self.params.ratios.values())))


def times_of(values: pl.Series) -> np.ndarray:
    """Convert times to increasing numbers, with NaN for missing ones. Texts are parsed as ISO 8601."""
    if values.dtype == pl.String:
        return np.array([_moment(text) for text in values], dtype=np.float64)
    if values.dtype.is_temporal():
        values = values.dt.timestamp("us") if values.dtype != pl.Time else values.cast(pl.Int64)
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _moment(text: str | None) -> float:
    """Parse an ISO 8601 time as microseconds, in UTC if it has no zone; NaN for other texts.

    One by one: what reads whole columns settles on how the first value is written, and takes others for
    missing.
    """
    try:
        moment = datetime.fromisoformat((text or "").strip())
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6


def _values(batch: Batch, column: str | None) -> pl.Series:
    values = pl.from_arrow(batch.table.column(column))
    if not isinstance(values, pl.Series):
        raise TypeError("a column is no series")
    return values


def _scores(values: pl.Series) -> np.ndarray:
    """Return decimal numbers as they are, and NaN for values that are classes of their own."""
    if not values.dtype.is_float():
        return np.full(len(values), np.nan)
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _hashes(values: pl.Series) -> np.ndarray:
    """Hash each value; 0 for null."""
    from trellis_data.dedup.kernels import byte_hashes

    texts = TextBuffers.of(values.cast(pl.String).fill_null(""))
    return np.asarray(byte_hashes(texts.data, texts.offsets))
