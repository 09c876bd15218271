"""Follow one job in the terminal: state, phase, steps, and its headline metrics."""

import time
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from trellis_contracts.states import FINISHED

from trellis_cli.alarms import AlarmLines
from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err

POLL_S = 1.0
#: The API may be restarted under a running job; that long it may be away before watching gives up.
PATIENCE_S = 60.0
LINE_PAUSE_S = 5.0


def watch_job(client: ApiClient, job_id: str) -> dict[str, Any]:
    """Show a job until its attempt is over; the answer is the job as it ended."""
    last_seen = time.monotonic()
    alarms = AlarmLines()
    with JobDisplay() as display:
        while True:
            try:
                job = client.get(f"/jobs/{job_id}")
                display.show(job, metrics_line(client, job))
                alarms.print_new(job)
                last_seen = time.monotonic()
            except Problem as problem:
                is_away = problem.exit_code == ExitCode.UNREACHABLE
                if not is_away or time.monotonic() - last_seen > PATIENCE_S:
                    raise
            else:
                if job["state"] in FINISHED:
                    return dict(client.get(f"/jobs/{job_id}"))
            time.sleep(POLL_S)


class JobDisplay:
    """A live bar in a terminal; elsewhere a line now and then when something changed."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=err,
        )
        self._task = self._bar.add_task("", total=None)
        self._live = Live(self._bar, console=err, refresh_per_second=4) if err.is_terminal else None
        self._last_label = ""
        self._last_line = ""
        self._last_time = 0.0

    def __enter__(self) -> "JobDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, job: dict[str, Any], metrics: str) -> None:
        """Show a job as it stands now."""
        progress = job["progress"]
        phase = progress["phase"] if job["state"] in ("running", "launching") else None
        label = f"{job['name']}: {job['state']}" + (f", {phase}" if phase else "")
        if self._live is not None:
            self._bar.update(
                self._task, description=label, completed=progress["step"], total=progress["total_steps"]
            )
            self._live.update(Group(self._bar, Text(f"  {metrics}", style="dim")))
            return
        line = f"{label}  {progress['step']}/{progress['total_steps'] or '?'}  {metrics}"
        is_due = label != self._last_label or time.monotonic() - self._last_time > LINE_PAUSE_S
        if line != self._last_line and is_due:
            err.print(line, markup=False, highlight=False, soft_wrap=True)
            self._last_label, self._last_line, self._last_time = label, line, time.monotonic()


def metrics_line(client: ApiClient, job: dict[str, Any]) -> str:
    """Format the newest values of the first headline metrics."""
    if job["state"] not in ("running", "stopping", "succeeded", "stopped"):
        return ""
    newest = {each["key"]: each["last_value"] for each in client.get(f"/jobs/{job['id']}/metric-keys")}
    shown = [(key, newest[key]) for key in job["headline_metrics"] if newest.get(key) is not None][:4]
    return "  ".join(f"{key} {value:.4g}" for key, value in shown)
