"""Shows how far a task on data is: a live bar in a terminal, elsewhere a line now and then."""

import time
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from trellis_cli.output import err

_LINE_PAUSE_S = 5.0
#: What is being done, in words; other codes are shown as they are.
_PHASES = {
    "bring": "bringing files",
    "read": "reading rows",
    "survey": "looking at all rows",
    "settle": "deciding over all rows",
    "apply": "working on rows",
    "count": "counting",
    "record": "recording the version",
    "serve": "starting the model",
    "ask": "asking the model",
}


class TaskBar:
    """On stderr; `show` fits the ``look`` of `waiting`."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rows]}"),
            TimeRemainingColumn(),
        )
        self._live = Progress(*columns, console=err, transient=True) if err.is_terminal else None
        self._bar = self._live.add_task("queued", total=None, rows="") if self._live else None
        self._last_label, self._last_time = "", 0.0

    def __enter__(self) -> "TaskBar":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, task: dict[str, Any]) -> None:
        """Show a task as it stands now."""
        label, rows = describe(task), describe_rows(task["progress"])
        if self._live and self._bar is not None:
            progress = task["progress"]
            self._live.update(
                self._bar,
                description=escape(label),
                completed=progress["rows_done"],
                total=progress["rows"],
                rows=rows,
            )
        elif label != self._last_label or time.monotonic() - self._last_time > _LINE_PAUSE_S:
            err.print(f"{label}  {rows}".rstrip(), markup=False, highlight=False, soft_wrap=True)
            self._last_label, self._last_time = label, time.monotonic()


def describe(task: dict[str, Any]) -> str:
    """What a task does at this moment, e.g. 2/3 working on rows: html, length."""
    progress = task["progress"]
    if task["state"] != "running" or not progress["phase"]:
        return f"{task['kind']}: {task['state']}"
    stage = f"{progress['stage']}/{progress['stages']} " if progress["stages"] else ""
    steps = f": {', '.join(progress['steps'])}" if progress["steps"] else ""
    return f"{stage}{_PHASES.get(progress['phase'], progress['phase'])}{steps}"


def describe_rows(progress: dict[str, Any]) -> str:
    """Rows done of all, and how fast."""
    if not progress["rows_done"]:
        return ""
    total = f" of {progress['rows']:,}" if progress["rows"] else ""
    rate = f", {progress['rows_per_s']:,.0f}/s" if progress["rows_per_s"] else ""
    return f"{progress['rows_done']:,}{total} rows{rate}"
