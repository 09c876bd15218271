"""What changed from one version to another."""

from typing import Any

from trellis_contracts.data_tasks import DiffTask
from trellis_data.versions.differences import compare

from trellis_workers.data.files import ChildTask
from trellis_workers.data.task_version import read_version
from trellis_workers.data.tools import Tools


def carry_out(task: ChildTask, tools: Tools) -> dict[str, Any]:
    """Compare the versions; the pages of differing rows are kept next to the store."""
    if not isinstance(task.request, DiffTask):
        raise TypeError(f"{task.request.kind} compares nothing")
    store, after = read_version(task)
    before = store.version(task.request.before)
    rows = sum(each for version in (before, after) for each in version.commit.rows.values())
    tools.tell_rows("compare", 0, rows)
    found = compare(store, before, after, task.request.key)
    return found.model_dump(mode="json")
