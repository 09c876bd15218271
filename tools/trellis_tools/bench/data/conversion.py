"""Rows a second of one core that the data factory brings from one format into another.

Processor time: what else the machine does meanwhile does not count.
"""

import time

import numpy as np
import pyarrow as pa
from trellis_data.formats.convert import Converter
from trellis_data.formats.shapes import Reading, Shape

from trellis_tools.bench.data.corpus import chunks

#: From what people upload to what trainers read.
CONVERSIONS = (
    (Shape.ALPACA, Shape.MESSAGES),
    (Shape.MESSAGES, Shape.SHAREGPT),
    (Shape.SHAREGPT, Shape.MESSAGES),
    (Shape.MESSAGES, Shape.VERL_RL),
)
ROWS = 100_000
_BATCH = 16_000
_SEED = 5


def measure_conversion() -> dict[str, float]:
    """Measure rows per second of each conversion; one's output is another's input."""
    tables = {Shape.ALPACA: _alpaca()}
    speeds = {}
    for source, target in CONVERSIONS:
        table = tables[source]
        converter = Converter(table.schema, Reading(source), target)
        started = time.process_time()
        parts = [converter.convert(table.slice(first, _BATCH)) for first in range(0, table.num_rows, _BATCH)]
        took = time.process_time() - started
        if any(part.problems for part in parts):
            raise ValueError(f"rows could not be converted from {source} to {target}")
        speeds[f"{source.value} to {target.value}"] = table.num_rows / took
        tables.setdefault(target, pa.concat_tables([part.table for part in parts]))
    return speeds


def _alpaca() -> pa.Table:
    texts = pa.concat_arrays([texts for texts, _ in chunks(ROWS, _SEED)])
    return pa.table(
        {
            "instruction": texts,
            "input": pa.array(np.where(np.arange(ROWS) % 2, "in short", "").tolist()),
            "output": texts.take(pa.array(np.arange(ROWS)[::-1])),
        }
    )
