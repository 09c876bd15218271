"""Makes what operators may know beside their rows: a tokenizer, further rows, judges with accounts."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from trellis_contracts.data_tasks import Needs
from trellis_data.batching import read_tables
from trellis_data.operator import Context
from trellis_data.pipeline.shards import ParquetAppender, conform
from trellis_data.pipeline.units import schema_of
from trellis_data.scoring.endpoint_judge import EndpointJudge

#: In the folder of the work: rows of versions, each as the one file that operators read.
RESOURCES_FOLDER = "resources"
#: Grades and accounts, so that work that goes on pays for nothing twice.
JUDGES_FOLDER = "judges"
_BATCH_ROWS = 8192


def make_context(needs: Needs, folder: Path) -> Context:
    """Build the context of operators that work in ``folder``."""
    return Context(
        tokenizer=needs.tokenizer,
        resources={
            name: _one_file(files, folder / RESOURCES_FOLDER) for name, files in needs.resources.items()
        },
        scorers=make_judges(needs, folder / JUDGES_FOLDER),
        allows_local_addresses=needs.allows_local_addresses,
    )


def make_judges(needs: Needs, folder: Path) -> dict[str, EndpointJudge]:
    """Make the judges by name; their accounts are stored in ``folder``."""
    return {
        name: EndpointJudge(name, endpoint, folder, needs.max_judge_cost)
        for name, endpoint in needs.judges.items()
    }


def _one_file(files: Sequence[Path], folder: Path) -> Path:
    """Return the file, or one with the rows of all, written once: its path is part of a run's identity."""
    if len(files) == 1:
        return files[0]
    named = hashlib.sha256("\0".join(map(str, files)).encode()).hexdigest()[:16]
    target = folder / f"{named}.parquet"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    schema = schema_of(files)
    draft = target.with_suffix(".draft")
    whole = ParquetAppender(draft)
    whole.write(schema.empty_table())
    for path in files:
        with pq.ParquetFile(path) as file:
            for table in read_tables(file, _BATCH_ROWS):
                whole.write(conform(table, schema))
    whole.close()
    os.replace(draft, target)
    return target
