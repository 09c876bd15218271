"""Clean and deduplicate with datatrove: ``with_datatrove.py INPUT OUTPUT BANDS ROWS SHINGLE PROCESSES``.

Its four MinHash stages as its example shows them, with two things in its favour: cleaning and signatures in
one pass, and words told apart by spaces instead of by spaCy.
"""

import logging
import sys
from pathlib import Path
from typing import Any

from clean import SHORTEST, clean
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.filters import LambdaFilter
from datatrove.pipeline.formatters.base import BaseFormatter
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter
from datatrove.utils.word_tokenizers import WordTokenizer


class Cleaned(BaseFormatter):
    """The shared cleaning."""

    name = "clean"

    def format(self, text: str) -> str:
        return clean(text)


class Spaces(WordTokenizer):
    """Words are what spaces part: all else is taken away before."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def long_enough(document: Any) -> bool:
    """Return whether a document is kept."""
    return len(document.text) >= SHORTEST


def main(source: str, target: str, bands: int, rows: int, shingle: int, processes: int) -> None:
    """Run all stages, one after the other."""
    work = Path(target) / "work"
    config = MinhashConfig(n_grams=shingle, num_buckets=bands, hashes_per_bucket=rows)
    cleaned, signatures, buckets, removals = (str(work / name) for name in ("clean", "sigs", "pairs", "gone"))
    stages: list[tuple[list[Any], int]] = [
        (
            [
                ParquetReader(source, glob_pattern="*.parquet"),
                Cleaned(),
                LambdaFilter(long_enough),
                ParquetWriter(cleaned),
                MinhashDedupSignature(signatures, config=config, language=Spaces()),
            ],
            processes,
        ),
        ([MinhashDedupBuckets(signatures, buckets, config=config)], bands),
        ([MinhashDedupCluster(buckets, removals, config=config)], 1),
        ([ParquetReader(cleaned), MinhashDedupFilter(removals), ParquetWriter(f"{target}/rows")], processes),
    ]
    for number, (pipeline, tasks) in enumerate(stages):
        LocalPipelineExecutor(
            pipeline, tasks=tasks, workers=min(tasks, processes), logging_dir=str(work / f"log-{number}")
        ).run()


if __name__ == "__main__":
    logging.disable(logging.INFO)
    main(sys.argv[1], sys.argv[2], *(int(value) for value in sys.argv[3:7]))
