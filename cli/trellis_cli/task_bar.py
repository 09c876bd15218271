"""Shows how far long work is: a live bar in a terminal, elsewhere a line now and then."""

import time
from typing import Any, Self

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from trellis_cli.output import err, size

_LINE_PAUSE_S = 5.0
#: What is being done, in words; other codes are shown as they are.
_PHASES = {
    "bring": "bringing files",
    "read": "reading rows",
    "scan": "looking at all rows",
    "reduce": "deciding over all rows",
    "apply": "working on rows",
    "count": "counting",
    "record": "recording the version",
    "serve": "starting the model",
    "ask": "asking the model",
}


class _Bar:
    """One bar on stderr; where that is no terminal, a line when something changes and every few seconds."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeRemainingColumn(),
        )
        self._live = Progress(*columns, console=err, transient=True) if err.is_terminal else None
        self._bar = self._live.add_task("queued", total=None, amount="") if self._live else None
        self._last_label, self._last_time = "", 0.0

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._live:
            self._live.stop()

    def _update(self, label: str, amount: str, done: float | None, total: float | None) -> None:
        if self._live and self._bar is not None:
            self._live.update(
                self._bar, description=escape(label), completed=done, total=total, amount=amount
            )
        elif label != self._last_label or time.monotonic() - self._last_time > _LINE_PAUSE_S:
            err.print(f"{label}  {amount}".rstrip(), markup=False, highlight=False, soft_wrap=True)
            self._last_label, self._last_time = label, time.monotonic()


class TaskBar(_Bar):
    """Of a task on data; `show` fits the ``look`` of `waiting`."""

    def show(self, task: dict[str, Any]) -> None:
        """Show a task as it stands now."""
        progress = task["progress"]
        self._update(describe(task), describe_rows(progress), progress["rows_done"], progress["rows"])


class FetchBar(_Bar):
    """Of a model that is fetched; `show` fits the ``look`` of `waiting`."""

    def show(self, model: dict[str, Any]) -> None:
        """Show the model's fetch as it stands now."""
        progress = model["progress"] or {}
        done, total = progress.get("done_bytes"), progress.get("total_bytes")
        label = f"{model['name']}: {progress.get('stage') or model['state']}"
        amount = "" if done is None else f"{size(done)} of {size(total)}" if total else size(done)
        self._update(label, amount, done, total)


class TransferBar(_Bar):
    """Of a push or an export."""

    def show(self, transfer: dict[str, Any]) -> None:
        """Show it as it stands now."""
        progress = transfer["progress"] or {}
        done, total = progress.get("done_bytes"), progress.get("total_bytes")
        label = f"{transfer['kind']} {transfer['model_name']}: {progress.get('file') or transfer['state']}"
        amount = "" if done is None else f"{size(done)} of {size(total)}" if total else size(done)
        self._update(label, amount, done, total)


def describe(task: dict[str, Any]) -> str:
    """Describe what a task is doing now, as in "2/3 working on rows: html, length"."""
    progress = task["progress"]
    if task["state"] != "running" or not progress["phase"]:
        return f"{task['kind']}: {task['state']}"
    stage = f"{progress['stage']}/{progress['stages']} " if progress["stages"] else ""
    steps = f": {', '.join(progress['steps'])}" if progress["steps"] else ""
    return f"{stage}{_PHASES.get(progress['phase'], progress['phase'])}{steps}"


def describe_rows(progress: dict[str, Any]) -> str:
    """Describe how many rows are done of all, and how fast."""
    if not progress["rows_done"]:
        return ""
    total = f" of {progress['rows']:,}" if progress["rows"] else ""
    rate = f", {progress['rows_per_s']:,.0f}/s" if progress["rows_per_s"] else ""
    return f"{progress['rows_done']:,}{total} rows{rate}"
