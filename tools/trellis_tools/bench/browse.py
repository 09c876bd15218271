"""Browsing a large dataset: pages at random places through the API."""

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets import versions
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.store import open_store
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.versions.store import Entry

from trellis_tools.bench.light_platform import LightPlatform
from trellis_tools.bench.result import Result

PAGE_LIMIT_MS = 200.0
PAGE_ROWS = 50
_PAGES = 200
_FILE_ROWS = 100_000
_SEED = 20_240_301
#: Words of the generated texts; a row has about 500 characters of them.
_WORDS = (
    *("the", "a", "sum", "of", "two", "numbers", "is", "found", "by", "counting", "on", "from", "first"),
    *("to", "last", "and", "writing", "down", "what", "remains", "so", "that", "nobody", "has", "remembers"),
    *("数学", "问题", "答案", "一共", "多少", "please", "explain", "every", "step", "before", "answering"),
)


def measure_browse(platform: LightPlatform, rows: int) -> Iterator[Result]:
    """Measure the slowest of many pages at random offsets, including the first page ever requested."""
    started = time.perf_counter()
    dataset = _make_dataset(platform.settings, rows)
    made_in = time.perf_counter() - started
    draw = random.Random(_SEED)  # noqa: S311 - places, not secrets
    offsets = [draw.randrange(max(1, rows - PAGE_ROWS)) for _ in range(_PAGES)]
    times = [_time_page(platform, dataset, offset) for offset in (rows - PAGE_ROWS, *offsets)]
    ordered = sorted(times)
    details = {
        "rows": rows,
        "page_rows": PAGE_ROWS,
        "pages": len(times),
        "first_page_ms": round(times[0], 1),
        "median_ms": round(statistics.median(times), 1),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)], 1),
        "made_in_s": round(made_in, 1),
    }
    yield Result("browse_page", ordered[-1], PAGE_LIMIT_MS, "ms", details=details)


def _time_page(platform: LightPlatform, dataset: str, offset: int) -> float:
    started = time.perf_counter()
    page = platform.client.get(f"/datasets/{dataset}/rows", offset=offset, limit=PAGE_ROWS)
    took = (time.perf_counter() - started) * 1000
    numbers = [row["number"] for row in page["rows"]]
    assert numbers == list(range(offset, offset + PAGE_ROWS)), "these are other rows"  # noqa: S101
    return took


def _make_dataset(settings: Settings, rows: int) -> str:
    """Create a dataset with rows in the store and the tables, as an import does."""
    store, database = open_store(settings), Database(settings)
    layout = Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"})
    dataset = Dataset(id=new_id("ds"), name="large", source={"kind": "upload", "name": "large.parquet"})
    try:
        with tempfile.TemporaryDirectory(dir=settings.data_root) as folder, store.writing():
            files = _write_files(Path(folder), rows)
            version = store.add_version({"train": files}, Entry("Generated", "benchmark", layout), [])
            with database.write() as session:
                session.add(dataset)
                session.flush()
                versions.publish(
                    session,
                    settings,
                    dataset_id=dataset.id,
                    branch="main",
                    expected=None,
                    version=version,
                    origin="import",
                )
    finally:
        database.dispose()
    return dataset.id


def _write_files(folder: Path, rows: int) -> list[Path]:
    files = []
    draw = np.random.default_rng(_SEED)
    for number, start in enumerate(range(0, rows, _FILE_ROWS)):
        positions = range(start, min(start + _FILE_ROWS, rows))
        files.append(folder / f"part-{number:05d}.parquet")
        pq.write_table(_make_table(positions, draw), files[-1], compression="zstd")
    return files


def _make_table(positions: range, draw: np.random.Generator) -> pa.Table:
    words = np.array(_WORDS, dtype=object)
    ends = np.cumsum(draw.integers(20, 160, len(positions)))
    drawn = words[draw.integers(0, len(words), int(ends[-1]))]
    texts = [" ".join(drawn[start:end]) for start, end in itertools.pairwise([0, *ends])]
    return pa.table(
        {
            "number": pa.array(positions, pa.int64()),
            "question": pa.array(texts),
            "answer": pa.array([f"It is {position}." for position in positions]),
        }
    )
