"""Adds rows to the store as a version, with what is known of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat
from trellis_data.formats.detection import detect
from trellis_data.layout import Layout
from trellis_data.pipeline.preview import take_rows
from trellis_data.pipeline.touched_rows import draw
from trellis_data.pipeline.units import schema_of
from trellis_data.statistics.collect import Depth, summarise
from trellis_data.statistics.model import Statistics
from trellis_data.versions.records import Provenance, Version
from trellis_data.versions.store import Entry, Store

from trellis_workers.data.files import ChildTask, Made, Origin, write_made
from trellis_workers.data.tools import Tools

_DETECTED_ROWS = 200
_MAX_WARNINGS = 50
_NOTHING_FITS = "The columns match no known format."

Splits = Mapping[str, Sequence[Path]]


@dataclass
class Content:
    """Rows, what they are, and where they came from."""

    splits: Splits
    layout: Layout
    #: What the format was recognised by.
    reason: str
    provenance: Provenance
    message: str
    #: Branch that they go to.
    branch: str
    origin: Origin
    warnings: list[dict[str, Any]] = field(default_factory=list)


def recognise(splits: Splits) -> tuple[Layout, str]:
    """Detect the format and column roles of some rows, and say why."""
    files = [path for paths in splits.values() for path in paths]
    first = take_rows(files, schema_of(files), draw(files, _DETECTED_ROWS, None))
    found = detect(first)
    if not found:
        return Layout(DataFormat.UNKNOWN), _NOTHING_FITS
    return Layout(found[0].format, found[0].columns), " ".join(found[0].reasons)[:500]


def record(task: ChildTask, tools: Tools, content: Content) -> Version:
    """Count the rows, add them to the store, and let the worker publish the version."""
    statistics = _count(content, tools)
    warnings = [*content.warnings, *_look(content, statistics)][:_MAX_WARNINGS]
    notes = {"format_reason": content.reason, "warnings": warnings, "task": task.task_id}
    provenance = content.provenance.model_copy(update={"notes": content.provenance.notes | notes})
    entry = Entry(
        content.message, task.author, content.layout, provenance, statistics.model_dump(mode="json")
    )
    parents = [each for each in (task.tip or task.version,) if each and _has_history(task)]
    store = Store(Path(task.store))
    tools.tell_rows("record", 0, statistics.rows)
    tools.hold_store()
    version = store.add_version(content.splits, entry, parents)
    made = Made(
        dataset_id=task.target_id or task.dataset_id,
        branch=content.branch,
        expected=task.tip,
        version=version.id,
        origin=content.origin,
    )
    write_made(tools.folder, made)
    return version


def _has_history(task: ChildTask) -> bool:
    """Tell whether the version that is read belongs to the dataset that the rows go to."""
    return task.tip is not None or (task.target_id or task.dataset_id) == task.dataset_id


def _count(content: Content, tools: Tools) -> Statistics:
    total = sum(pq.read_metadata(path).num_rows for paths in content.splits.values() for path in paths)
    done = 0

    def tick(rows: int) -> None:
        nonlocal done
        done += rows
        tools.tell_rows("count", done, total)

    return summarise(content.splits, content.layout, Depth(), tick)


def _look(content: Content, statistics: Statistics) -> list[dict[str, Any]]:
    """List the warnings about the rows, which do not stop the import."""
    found: list[dict[str, Any]] = []
    if content.layout.format is DataFormat.UNKNOWN:
        message = "The columns match no known format; map the columns when you create a job."
        found.append({"code": "format_unknown", "message": message})
    roles = {column: role for role, column in content.layout.columns.items()}
    for column in statistics.columns:
        missing = column.nulls + column.empty
        if missing and column.name in roles:
            message = f"Column '{column.name}' is empty in {missing:,} rows."
            found.append(
                {"code": "empty_values", "message": message, "column": column.name, "row_count": missing}
            )
    return found
