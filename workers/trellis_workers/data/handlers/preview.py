"""A pipeline on a few rows."""

from typing import Any

from trellis_contracts.data_tasks import PreviewTask
from trellis_data.pipeline.check import stated_layout
from trellis_data.pipeline.preview import preview
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.units import schema_of
from trellis_data.versions.version_rows import files_of

from trellis_workers.data.context import make_context
from trellis_workers.data.files import ChildTask
from trellis_workers.data.task_version import read_version
from trellis_workers.data.tools import Tools


def carry_out(task: ChildTask, tools: Tools) -> dict[str, Any]:
    """Return what every step does to each of the rows."""
    request = task.request
    if not isinstance(request, PreviewTask):
        raise TypeError(f"{request.kind} is no preview")
    store, version = read_version(task)
    files = files_of(store, version).get(request.split)
    if not files:
        raise PipelineProblem("split_unknown", f"The version has no split '{request.split}'.")
    tree = store.tree(version.commit.tree)
    tools.tell_rows("preview", 0, request.rows)
    found = preview(
        request.pipeline,
        files,
        layout=stated_layout(request.pipeline, schema_of(files)) or tree.layout,
        rows=request.rows,
        at_random=request.at_random,
        find_changed=request.find_changed,
        context=make_context(task.needs, tools.folder),
    )
    return found.model_dump(mode="json")
