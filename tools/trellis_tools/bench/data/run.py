"""The data factory's figures, all from one run on two cores over one corpus.

What is alike for all sides: the corpus in two Parquet files, the cleaning (wrong decoding by ftfy, NFC,
control characters, spaces, no texts under 20 characters), runs of five words, the number of hash functions
and how they are cut into bands, two processes, and that the rows which stay are written out. What is not:
ours compares the candidates' runs of words before it merges them, the others merge whatever meets in a
band; their false merges come from that.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from trellis_cli.output import err

from trellis_tools.bench.data.conversion import measure_conversion
from trellis_tools.bench.data.corpus import write_corpus
from trellis_tools.bench.data.sides import BASELINES, Outcome, run_ours
from trellis_tools.bench.result import Result

DEFAULT_ROWS = 1_000_000
#: Beyond this the others take hours; ours is then measured against its bounds alone.
MOST_ROWS_OF_BASELINES = 2_000_000
#: Ours takes at most half of what the fastest of the others takes.
TIME_BOUND = 0.5
#: All sides cut the same signatures, each under hashes of its own: so little apart, recall is equal.
RECALL_BOUND = 0.999
LEAST_RECALL = 0.95
MOST_FALSE_MERGES = 0.01
MOST_MEMORY_MB = 1500.0
#: Time per row against a tenth of the rows; 1 is linear.
GROWTH_BOUND = 1.2
LEAST_CONVERTED = 100_000.0
_SEED = 20_240_229


def measure_data(rows: int = DEFAULT_ROWS) -> Iterator[Result]:
    """Convert; clean and deduplicate with each side: time, recall, false merges, memory, growth."""
    speeds = measure_conversion()
    yield Result(
        "data_conversion",
        min(speeds.values()),
        LEAST_CONVERTED,
        "rows/s",
        is_more_better=True,
        details=speeds,
    )
    with tempfile.TemporaryDirectory(prefix="trellis-data-") as root:
        tenth = _ours(Path(root) / "tenth", max(rows // 10, 1000))
        folder = Path(root) / "whole"
        (folder / "input").mkdir(parents=True)
        planted = write_corpus(folder / "input", rows, _SEED)
        ours = _told(run_ours(folder / "input", folder, planted))
        others = []
        if rows <= MOST_ROWS_OF_BASELINES:
            others = [_told(baseline(folder / "input", folder, planted)) for baseline in BASELINES.values()]
        details = {"rows": rows, "sides": [each.as_json() for each in (ours, *others)]}
        if others:
            fastest = min(each.usage.seconds for each in others)
            yield Result(
                "data_clean_dedup", ours.usage.seconds, fastest, "s", bound=TIME_BOUND, details=details
            )
        best = max((each.recall for each in others), default=LEAST_RECALL)
        bound = RECALL_BOUND if others else 1.0
        yield Result("data_recall", ours.recall, best, "share", bound=bound, is_more_better=True)
        yield Result("data_false_merges", ours.false_merges, MOST_FALSE_MERGES, "share")
        yield Result("data_memory", ours.usage.peak_bytes / 1e6, MOST_MEMORY_MB, "MB")
        per_row = tenth.usage.seconds / max(rows // 10, 1000) * 1e6
        yield Result("data_growth", ours.usage.seconds / rows * 1e6, per_row, "µs/row", bound=GROWTH_BOUND)


def _ours(folder: Path, rows: int) -> Outcome:
    (folder / "input").mkdir(parents=True)
    return run_ours(folder / "input", folder, write_corpus(folder / "input", rows, _SEED))


def _told(outcome: Outcome) -> Outcome:
    """Say at once what a side took; the next one may take minutes."""
    figures = outcome.as_json()
    err.print(", ".join(f"{name} {value}" for name, value in figures.items()), soft_wrap=True)
    return outcome
