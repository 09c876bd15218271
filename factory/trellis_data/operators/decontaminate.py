"""Rows that a benchmark's items were copied into."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from trellis_contracts.recipe import DataFormat, Text

from trellis_data.findings import Tally
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem, TextParams, parameter
from trellis_data.operators.text_operator import TextOperator
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import is_conversation, is_text, texts_of
from trellis_data.words import buffers, tables

_MOST_ITEMS = 500
#: Column that names the items.
_MARKS = "contamination"
_AT_A_TIME = 4096
#: Longer texts are looked at in pieces that overlap by more than any run of words has characters.
_PIECE, _OVERLAP = 1_000_000, 10_000


class DecontaminateParams(TextParams):
    """Of what rows have to be free."""

    old_names: ClassVar = {"least_words": "min_words"}

    benchmarks: list[str] = parameter(
        ...,
        min_length=1,
        title=Text(en="Benchmarks", zh="基准"),
        help=Text(
            en="Names of the files (Parquet or JSONL) with the benchmark items.",
            zh="包含基准题目的文件（Parquet 或 JSONL）名称。",
        ),
    )
    benchmark_columns: list[str] | None = parameter(
        None,
        title=Text(en="Benchmark columns", zh="基准的列"),
        help=Text(
            en="Which columns to compare, e.g. the question. Defaults to all text columns.",
            zh="这些文件中参与比较的列（如题目）；默认为所有文本列。",
        ),
    )
    words: int = parameter(
        13,
        ge=4,
        le=50,
        title=Text(en="N-gram size", zh="连续词数"),
        help=Text(
            en="A row matches if it shares an n-gram of this size with an item (GPT-3 used "
            "13). Ignores case, width and punctuation; Chinese characters count as words.",
            zh="连续这么多个词与题目相同即命中（GPT-3 取 13）；忽略大小写、全半角和标点，一个汉字为一个词。",
        ),
    )
    min_words: int = parameter(
        8,
        ge=1,
        le=50,
        title=Text(en="Min item length", zh="最短题目"),
        help=Text(
            en="Items shorter than the n-gram size only match identical texts; items shorter "
            "than this are skipped, because they are too generic ('yes').",
            zh="词数不足的题目仅在整段文本完全相同时命中；比该值更短的题目（如“是”）不参与比较。",
        ),
    )
    action: Literal["drop", "mark"] = parameter(
        "drop",
        title=Text(en="Action", zh="处理方式"),
        help=Text(
            en="Drop matching rows, or keep them and add the item's name in a 'contamination' column.",
            zh="删除命中的行，或保留并在 contamination 列中写明题目。",
        ),
    )


class _Known(NamedTuple):
    """The runs of words of all items."""

    hashes: np.ndarray  # uint64, sorted, each once
    items: np.ndarray  # int32: index of the item that has it first
    sieve: np.ndarray  # uint64, bits over the hashes' lowest bits


class Decontaminate(TextOperator):
    """Drops rows that share a run of words with a benchmark's item."""

    id = "decontaminate"
    group = "clean"
    title = Text(en="Benchmark decontamination", zh="基准去污染")
    help = Text(
        en="Drops rows that share a 13-gram with a benchmark item.",
        zh="删除与基准题目有连续 13 个词相同的行，并列出相应题目。",
    )
    Params = DecontaminateParams
    params: DecontaminateParams

    def __init__(self, params: DecontaminateParams, context: Context) -> None:
        super().__init__(params, context)
        self._names: list[str] = []
        hashes, items = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for name in params.benchmarks:
            for more, owners in self._runs_of(name):
                hashes.append(more)
                items.append(owners)
        self._known = _index(np.concatenate(hashes), np.concatenate(items))

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that the benchmarks exist and contain texts."""
        super().check(schema, layout)
        if self.params.action == "mark" and _MARKS in schema.names:
            raise OperatorProblem(
                "column_taken",
                f"There is a column '{_MARKS}' already; rename it, or name all benchmarks at once.",
            )
        for name in self.params.benchmarks:
            lines = _scan(self._path(name))
            _text_columns(lines, name, self.params.benchmark_columns)

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with one more column if rows are marked."""
        return schema if self.params.action == "drop" else schema.append(pa.field(_MARKS, pa.string()))

    def apply(self, batch: Batch) -> Outcome:
        """Look every run of words up."""
        frame = _in_pieces(self.texts(batch))
        places = self._find(frame["text"])
        hit = np.flatnonzero(places >= 0)
        items = np.full(len(batch), -1, dtype=np.int64)
        # Backwards, so that the first text of a row that is hit names the item.
        items[frame["row"].to_numpy()[hit[::-1]]] = self._known.items[places[hit[::-1]]]
        named = [self._names[item] for item in items[items >= 0]]
        benchmarks = np.array([name.rsplit("#", 1)[0] for name in named], dtype=object)
        drop = {}
        table = batch.table
        if self.params.action == "drop":
            for benchmark in dict.fromkeys(benchmarks):
                hits = np.zeros(len(batch), dtype=bool)
                hits[np.flatnonzero(items >= 0)[benchmarks == benchmark]] = True
                drop[f"contaminated:{benchmark}"] = hits
        else:
            marks = [self._names[item] if item >= 0 else None for item in items]
            table = table.append_column(_MARKS, pa.array(marks, pa.string()))
        outcome = dropping(table, drop)
        return replace(
            outcome,
            changed=outcome.keep & (items >= 0),
            counts=Counter(benchmarks.tolist()),
            findings={"items": Tally.of(named, limit=_MOST_ITEMS)} if named else {},
        )

    def _find(self, texts: pl.Series) -> np.ndarray:
        from trellis_data.word_kernels import find_known

        places, _ = find_known(
            *buffers(texts),
            *tables(),
            self.params.words,
            self._least(),
            self._known.hashes,
            self._known.sieve,
        )
        found: np.ndarray = places
        return found

    def _least(self) -> int:
        return min(self.params.min_words, self.params.words)

    def _path(self, name: str) -> Path:
        try:
            return self.context.resources[name]
        except KeyError:
            known = ", ".join(self.context.resources) or "none"
            raise OperatorProblem(
                "resource_missing", f"There is no file '{name}' among the pipeline's resources ({known})."
            ) from None

    def _runs_of(self, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Hash the benchmark's runs of words; return them with the items that contain them."""
        from trellis_data.word_kernels import runs

        lines = _scan(self._path(name))
        columns = _text_columns(lines, name, self.params.benchmark_columns)
        table = lines.select(columns).collect().to_arrow()
        first = len(self._names)
        self._names += [f"{name}#{index}" for index in range(table.num_rows)]
        found = []
        layout = Layout(DataFormat.UNKNOWN)
        for start in range(0, table.num_rows, _AT_A_TIME):
            frame = texts_of(Batch(table.slice(start, _AT_A_TIME).combine_chunks(), layout))
            hashes, owners = runs(*buffers(frame["text"]), *tables(), self.params.words, self._least())
            found.append((hashes, first + start + frame["row"].to_numpy()[owners].astype(np.int64)))
        return found


def _scan(path: Path) -> pl.LazyFrame:
    """Open the rows of a benchmark's file."""
    try:
        lines = pl.scan_parquet(path) if path.suffix == ".parquet" else pl.scan_ndjson(path)
        lines.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise OperatorProblem(
            "benchmark_unreadable",
            f"{path.name} cannot be read ({str(error).splitlines()[0]}); it has to be Parquet or JSONL.",
        ) from None
    return lines


def _text_columns(lines: pl.LazyFrame, name: str, wanted: list[str] | None) -> list[str]:
    schema = lines.head(1).collect().to_arrow().schema
    texts = [field.name for field in schema if is_text(field.type) or is_conversation(field.type)]
    missing = [column for column in wanted or [] if column not in texts]
    if missing or not texts:
        raise OperatorProblem(
            "benchmark_without_text",
            f"The benchmark '{name}' has no texts in {', '.join(missing) or 'any column'}; "
            f"columns with texts are: {', '.join(texts) or 'none'}.",
        )
    return wanted if wanted is not None else texts


def _index(hashes: np.ndarray, items: np.ndarray) -> _Known:
    known, firsts = np.unique(hashes, return_index=True)
    # Sixteen bits for each hash: one in sixteen of unknown runs has to be looked up.
    size = max(1, 1 << int(max(1, len(known)) * 16 - 1).bit_length() >> 6)
    sieve = np.zeros(size, dtype=np.uint64)
    bits = known & np.uint64(size * 64 - 1)
    np.bitwise_or.at(sieve, (bits >> np.uint64(6)).astype(np.int64), np.uint64(1) << (bits & np.uint64(63)))
    return _Known(known, items[firsts], sieve)


def _in_pieces(frame: pl.DataFrame) -> pl.DataFrame:
    """Split very long texts of the frame into pieces, to limit the memory that one needs."""
    if frame.is_empty() or int(frame["text"].str.len_bytes().max() or 0) <= _PIECE:  # type: ignore[arg-type]
        return frame
    parts = [
        [text[start : start + _PIECE + _OVERLAP] for start in range(0, max(1, len(text)), _PIECE)]
        for text in frame["text"]
    ]
    return frame.with_columns(text=pl.Series(parts, dtype=pl.List(pl.String))).explode("text")
