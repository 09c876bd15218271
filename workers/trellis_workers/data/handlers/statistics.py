"""Statistics of a version, with lengths in a model's tokens."""

from typing import Any

from trellis_contracts.data_tasks import StatisticsTask
from trellis_data.statistics.collect import Depth, summarise
from trellis_data.versions.version_rows import files_of

from trellis_workers.data.files import ChildTask
from trellis_workers.data.task_version import read_version
from trellis_workers.data.tools import Tools


def carry_out(task: ChildTask, tools: Tools) -> dict[str, Any]:
    """Count the statistics of the version's rows."""
    if not isinstance(task.request, StatisticsTask):
        raise TypeError(f"{task.request.kind} counts nothing")
    store, version = read_version(task)
    tree = store.tree(version.commit.tree)
    done = 0

    def tick(rows: int) -> None:
        nonlocal done
        done += rows
        tools.tell_rows("count", done, tree.rows)

    tools.tell_rows("count", 0, tree.rows)
    depth = Depth(tokenizer=task.needs.tokenizer)
    found = summarise(files_of(store, version), tree.layout, depth, tick)
    return found.model_dump(mode="json")
