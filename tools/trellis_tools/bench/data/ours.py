"""Clean and deduplicate with the data factory: ``trellis_tools.bench.data.ours INPUT OUTPUT PROCESSES``."""

import json
import sys
from pathlib import Path
from typing import Any

from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.pipeline.runner import Options, run

#: Like ``baselines/clean.py``.
STEPS: list[dict[str, Any]] = [
    {"operator": "normalise_text"},
    {"operator": "control_characters"},
    {"operator": "length", "params": {"unit": "characters", "minimum": 20}},
    {"operator": "minhash_duplicates", "params": {"threshold": 0.8, "shingle": 5}},
]


def main(source: str, target: str, processes: int) -> None:
    """Run the pipeline and print what it used."""
    pipeline = Pipeline.model_validate({"name": "benchmark", "format": "text", "steps": STEPS})
    layout = Layout(DataFormat.TEXT, {"text": "text"})
    files = sorted(Path(source).glob("*.parquet"))
    report = run(pipeline, files, Path(target), layout=layout, options=Options(processes=processes))
    print(json.dumps({"seconds": report.seconds, "peak_memory_bytes": report.peak_memory_bytes}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
