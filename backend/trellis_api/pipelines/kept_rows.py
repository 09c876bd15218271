"""What a run kept aside for people: dropped rows and clusters of duplicates, read page by page."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlmodel import Session
from trellis_data.pipeline.ledger import POSITION, REASON

from trellis_api.core.settings import Settings
from trellis_api.datasets.cutting import PageRows
from trellis_api.pipelines import runs
from trellis_api.pipelines.errors import NothingKept, StepNotFound
from trellis_api.pipelines.schemas import Cluster, ClusterMember, Clusters, DroppedRow, DroppedRows

log = logging.getLogger(__name__)
#: Members of a cluster that are shown: those whose text the file holds.
_SHOWN_MEMBERS = 20


def read_dropped(
    session: Session, settings: Settings, *, task_id: str, step: int, offset: int, limit: int
) -> DroppedRows:
    """Read a page of the rows that a step dropped; none if it dropped none."""
    path, reports_some = _find(session, settings, task_id, step, "dropped")
    if path is None:
        if reports_some:
            raise NothingKept("The rows dropped by this step were not stored.")
        return DroppedRows(offset=offset, row_count=0, rows=[])
    with _open(path) as file:
        count = file.metadata.num_rows
        page = PageRows(max(0, min(limit, count - offset))).add(_window(file, offset, limit))
    rows = [_show_dropped(row) for row in page.rows]
    return DroppedRows(offset=offset, row_count=count, rows=rows, cut=page.cut)


def read_clusters(
    session: Session, settings: Settings, *, task_id: str, step: int, offset: int, limit: int
) -> Clusters:
    """Read a page of the clusters that a step found, largest first."""
    path, _ = _find(session, settings, task_id, step, "clusters")
    if path is None:
        raise NothingKept("This step doesn't detect duplicates.")
    with _open(path) as file:
        count = _count_clusters(file)
        wanted = range(offset, min(offset + limit, count))
        return Clusters(offset=offset, cluster_count=count, clusters=_read_clusters(file, wanted))


def _find(
    session: Session, settings: Settings, task_id: str, step: int, what: str
) -> tuple[Path | None, bool]:
    """Return the step's file, and whether the report says that the step dropped rows."""
    task = runs.get_run(session, task_id=task_id)
    report = runs.report_of(task)
    if report is None:
        raise StepNotFound(f"The run has no report: it is {task.state}.", {"state": task.state})
    if not 0 <= step < len(report.steps):
        raise StepNotFound(f"The run has {len(report.steps)} steps, counted from 0.")
    folder, found = runs.run_folder(settings, task), report.steps[step]
    find = runs.dropped_path if what == "dropped" else runs.clusters_path
    return find(report, found.name, folder), found.dropped > 0


@contextmanager
def _open(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        log.warning("%s cannot be read: %s", path, error)
        raise NothingKept("The run's stored rows were deleted or can't be read.") from error


def _window(file: pq.ParquetFile, offset: int, limit: int) -> Iterator[pa.Table]:
    """Yield the rows from a position on; only their row groups are read."""
    start = 0
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        first, last = max(offset, start), min(offset + limit, start + size)
        if first < last:
            yield file.read_row_group(group).slice(first - start, last - first)
        start += size


def _show_dropped(row: dict[str, Any]) -> DroppedRow:
    return DroppedRow(position=row.pop(POSITION, None), reason=row.pop(REASON, None), row=row)


def _count_clusters(file: pq.ParquetFile) -> int:
    """Count the clusters: they are numbered from 0 in order, so the last row has the last number."""
    groups = file.metadata.num_row_groups
    for group in reversed(range(groups)):
        numbers = file.read_row_group(group, columns=["cluster"]).column(0)
        if len(numbers):
            return int(numbers[-1].as_py()) + 1
    return 0


def _read_clusters(file: pq.ParquetFile, wanted: range) -> list[Cluster]:
    members: dict[int, list[ClusterMember]] = {number: [] for number in wanted}
    sizes: dict[int, int] = {}
    for table in _groups_with(file, wanted):
        for number, rows in _parts(table, wanted):
            sizes[number] = int(rows.column("size")[0].as_py())
            shown = members[number]
            room = max(0, _SHOWN_MEMBERS - len(shown))
            shown += [_show_member(row) for row in rows.slice(0, room).to_pylist()]
            # The one that stays is shown in any case; in a huge cluster it may lie anywhere.
            if not any(each.survives for each in shown):
                later = rows.slice(room).filter(rows.slice(room).column("survives"))
                shown += [_show_member(row) for row in later.to_pylist()]
    return [
        Cluster(
            number=number,
            size=sizes[number],
            members=sorted(shown, key=lambda each: (not each.survives, each.position))[:_SHOWN_MEMBERS],
        )
        for number, shown in members.items()
        if number in sizes
    ]


def _groups_with(file: pq.ParquetFile, wanted: range) -> Iterator[pa.Table]:
    """Yield the row groups that hold one of the clusters, by the bounds stored in the file."""
    if not wanted:
        return
    place = file.schema_arrow.get_field_index("cluster")
    for group in range(file.metadata.num_row_groups):
        bounds = file.metadata.row_group(group).column(place).statistics
        if bounds is not None and bounds.has_min_max and (bounds.min > wanted[-1] or bounds.max < wanted[0]):
            continue
        yield file.read_row_group(group)


def _parts(table: pa.Table, wanted: range) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each wanted cluster; a table has the rows of a cluster together, in order."""
    numbers = table.column("cluster").to_numpy()
    for number in wanted:
        first, last = (int(np.searchsorted(numbers, number, side=side)) for side in ("left", "right"))
        if first < last:
            yield number, table.slice(first, last - first)


def _show_member(row: dict[str, Any]) -> ClusterMember:
    return ClusterMember(
        position=row["position"], survives=row["survives"], similarity=row["similarity"], text=row["text"]
    )
