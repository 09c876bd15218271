"""Reads a page of rows in advance: the first one loads libraries, for which no request shall wait."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis_api.datasets.cutting import PageRows


def read_a_page() -> None:
    """Read and show a row as a page does (``rows.read_page``), from memory."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["a"], "turns": [[{"role": "user"}]]}), sink, compression="zstd")
    with pq.ParquetFile(pa.BufferReader(sink.getvalue())) as file:
        table = file.read_row_groups([0])
    PageRows(1).add([pa.concat_tables([table]).take(pa.array(np.arange(1)))])
