"""Small operators for tests of pipelines: what they do is seen at a glance."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from trellis_contracts.recipe import Text
from trellis_data.findings import Histogram
from trellis_data.layout import Batch, Layout
from trellis_data.operator import GlobalOperator, Group, OperatorProblem, Params, RowOperator, parameter
from trellis_data.outcome import Outcome, dropping, kept_all

_NONE = Text(en="-", zh="-")


class _Row(RowOperator):
    title = help = _NONE
    group: ClassVar[Group] = "clean"


class _Column(Params):
    column: str = parameter("text", title=_NONE, help=_NONE)


class Shout(_Row):
    """Puts a text in capitals."""

    id = "test_shout"
    Params = _Column

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        if self.params.column not in schema.names:
            raise OperatorProblem("column_missing", f"no column {self.params.column}")

    def apply(self, batch: Batch) -> Outcome:
        old = batch.table.column(self.params.column)
        new = pc.utf8_upper(old)
        at = batch.table.schema.get_field_index(self.params.column)
        changed = pc.fill_null(pc.not_equal(old, new), False).to_numpy()
        outcome = kept_all(batch.table.set_column(at, self.params.column, new), changed)
        lengths = pc.fill_null(pc.utf8_length(new), 0).to_numpy()
        outcome.counts["letters"] += int(lengths.sum())
        outcome.findings["lengths"] = Histogram.of(lengths, [0, 10, 100])
        return outcome


class DropShort(_Row):
    """Drops short texts."""

    id = "test_drop_short"

    class Params(Params):
        shortest: int = parameter(5, title=_NONE, help=_NONE, ge=0)

    def apply(self, batch: Batch) -> Outcome:
        lengths = pc.fill_null(pc.utf8_length(batch.table.column("text")), 0).to_numpy()
        return dropping(batch.table, {"too_short": lengths < self.params.shortest})


class Length(_Row):
    """Adds a column."""

    id = "test_length"
    group: ClassVar[Group] = "score"
    Params = Params

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        return schema.append(pa.field("length", pa.int64()))

    def apply(self, batch: Batch) -> Outcome:
        lengths = pc.utf8_length(batch.table.column("text")).cast(pa.int64())
        return kept_all(batch.table.append_column("length", lengths))


class Twice(_Row):
    """Makes two rows of one."""

    id = "test_twice"
    Params = Params

    def apply(self, batch: Batch) -> Outcome:
        sources = np.repeat(np.arange(len(batch)), 2)
        whole = np.ones(len(batch), dtype=bool)
        return Outcome(batch.table.take(pa.array(sources)), whole, whole, sources=sources)


class ToSplits(_Row):
    """Every tenth id goes to the test split."""

    id = "test_split"
    group: ClassVar[Group] = "split"

    class Params(Params):
        name: str = parameter("test", title=_NONE, help=_NONE)

    def apply(self, batch: Batch) -> Outcome:
        ids = batch.table.column("id").to_numpy()
        names = np.where(ids % 10 == 0, self.params.name, "train")
        return kept_all(batch.table.append_column("split", pa.array(names.tolist(), pa.string())))


class DropSeen(GlobalOperator):
    """Keeps the first row of each text."""

    id = "test_drop_seen"
    title = help = _NONE
    group: ClassVar[Group] = "deduplicate"
    Params = Params

    def scan(self, batches: Iterator[Batch], folder: Path) -> None:
        tables = [
            pa.table(
                {
                    "text": batch.table.column("text"),
                    "at": pa.array(np.arange(batch.start, batch.start + len(batch))),
                }
            )
            for batch in batches
        ]
        pq.write_table(pa.concat_tables(tables), folder / "texts.parquet")

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        texts = pa.concat_tables([pq.read_table(scan / "texts.parquet") for scan in scans])
        first: dict[str, int] = {}
        for text, at in zip(texts["text"].to_pylist(), texts["at"].to_pylist(), strict=True):
            first.setdefault(text, at)
        np.save(folder / "first.npy", np.array(sorted(first.values()), dtype=np.int64))
        most = Counter(texts["text"].to_pylist()).most_common(1)
        return {"distinct": len(first), "most": most[0][1] if most else 0}

    def apply(self, batch: Batch, reduced: Path) -> Outcome:
        first = np.load(reduced / "first.npy")
        at = np.arange(batch.start, batch.start + len(batch))
        return dropping(batch.table, {"seen_before": ~np.isin(at, first)})


class Slow(_Row):
    """Takes its time over a batch."""

    id = "test_slow"

    class Params(Params):
        seconds: float = parameter(0.05, title=_NONE, help=_NONE)

    def apply(self, batch: Batch) -> Outcome:
        time.sleep(self.params.seconds)
        return kept_all(batch.table)


class Deadly(_Row):
    """Kills its own process at the row with id 7: once, or whenever it meets it; or only raises."""

    id = "test_deadly"

    class Params(Params):
        marker: str = parameter("", title=_NONE, help=_NONE)
        how: Literal["once", "always", "raise"] = parameter("once", title=_NONE, help=_NONE)

    def apply(self, batch: Batch) -> Outcome:
        if 7 in batch.table.column("id").to_pylist():
            if self.params.how == "raise":
                raise RuntimeError("seven is unlucky")
            marker = Path(self.params.marker)
            if self.params.how == "always" or not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return kept_all(batch.table)
