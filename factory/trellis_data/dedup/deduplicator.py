"""What all operators that find duplicates have in common: scan of texts, survivors, dropping the others."""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa

from trellis_data.dedup.clusters import apply_clusters
from trellis_data.dedup.number_columns import ColumnWriter
from trellis_data.dedup.sources import check_score, scan_rows
from trellis_data.layout import Batch, Layout
from trellis_data.operator import GlobalOperator
from trellis_data.outcome import Outcome


class Deduplicator(GlobalOperator):
    """Keeps one row of each cluster; what makes a cluster is the subclass's business."""

    group: ClassVar[Any] = "deduplicate"
    #: Code of the reason for which rows are dropped.
    reason: ClassVar[str]

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: ARG002 - all layouts have texts
        check_score(schema, self.params)

    def scan(self, batches: Iterator[Batch], folder: Path) -> None:
        with ColumnWriter(folder) as writer:
            for batch in batches:
                self.write(writer, batch, scan_rows(writer, batch, self.params))

    def apply(self, batch: Batch, reduced: Path) -> Outcome:
        return apply_clusters(batch, reduced, self.reason)

    @abstractmethod
    def write(self, writer: ColumnWriter, batch: Batch, texts: pl.Series) -> None:
        """Append what reducing needs of the batch's rows, whose texts are ``texts``."""
