"""`trellis jobs tensorboard`: the metrics of a platform's jobs as event files on this machine."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_contracts.states import FINISHED

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.event_files import EventFiles
from trellis_cli.output import Json, err, out, print_json
from trellis_cli.resolve_by_name import find_job
from trellis_cli.waiting import read_patiently

_POLL_S = 2.0
#: Steps that are read at once: as many points as the API returns without thinning a curve out.
_WINDOW = 20_000


def register(app: typer.Typer) -> None:
    """Add the command to those of jobs."""
    app.command("tensorboard")(write_event_files)


def write_event_files(
    jobs: Annotated[list[str], typer.Argument(help="IDs (job_...) or unique names.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Log folder for TensorBoard; each job gets a folder in it.")
    ] = Path("tensorboard"),
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Add new steps until the jobs have finished.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the metrics of jobs as event files for TensorBoard (`pip install tensorboard`)."""
    client = connect()
    runs = [JobEventFiles(client, find_job(client, each, must_be_one=True), output) for each in jobs]
    try:
        while open_runs := [run for run in runs if not run.is_complete]:
            for run in open_runs:
                run.update(is_last=not follow)
            if follow and any(not run.is_complete for run in runs):
                time.sleep(_POLL_S)
    except KeyboardInterrupt:
        err.print("Stopped; the jobs go on.", highlight=False)
    finally:
        for run in runs:
            run.close()
    if as_json:
        print_json([run.describe() for run in runs])
        return
    for run in runs:
        out.print(f"{run.job_id}  {run.steps} steps  {run.folder}", markup=False, highlight=False)
    out.print(f"tensorboard --logdir {output}", markup=False, highlight=False)


class JobEventFiles:
    """Event files of one job, in a folder of their own."""

    def __init__(self, client: ApiClient, job_id: str, output: Path) -> None:
        self._client = client
        self.job_id = job_id
        self.folder = output / job_id
        if self.folder.exists() and any(self.folder.iterdir()):
            # TensorBoard would draw both: a second line back to the first step.
            raise Problem(
                f"{self.folder} has event files already",
                hint="remove it, or choose another folder with -o",
                exit_code=ExitCode.USAGE,
            )
        self._files = EventFiles(self.folder)
        self._next = 0
        #: Steps that were written.
        self.steps = 0
        self.is_complete = False

    def update(self, *, is_last: bool) -> None:
        """Write new steps; of a job that goes on all but the newest, which may still get metrics."""
        # The state first: what was reported before the end is then read.
        job = read_patiently(self._client, f"/jobs/{self.job_id}")
        self.is_complete = is_last or job["state"] in FINISHED
        while self._write_window():
            pass

    def _write_window(self) -> bool:
        """Write the next steps, each as one event; tell whether there are more."""
        found = self._read()
        has_more = any(series["is_downsampled"] for series in found["series"])
        if has_more:
            found = self._read(to_step=self._next + _WINDOW - 1)
        steps: dict[int, dict[str, float]] = {}
        for series in found["series"]:
            for step, value in zip(series["steps"], series["values"], strict=True):
                numbers = steps.setdefault(step, {})
                if value is not None:
                    numbers[series["key"]] = float(value)
        if steps and not has_more and not self.is_complete:
            del steps[max(steps)]
        for step, numbers in sorted(steps.items()):
            self._files.write(step, numbers)
        self.steps += len(steps)
        self._next = self._next + _WINDOW if has_more else max(steps, default=self._next - 1) + 1
        return has_more

    def _read(self, **window: int) -> dict[str, Any]:
        """Read all curves from the next step on."""
        path = f"/jobs/{self.job_id}/metrics"
        return read_patiently(self._client, path, from_step=self._next, max_points=_WINDOW, **window)

    def close(self) -> None:
        """Write what is left."""
        self._files.close()

    def describe(self) -> dict[str, Any]:
        """Describe what was written, for scripts."""
        return {"job": self.job_id, "folder": str(self.folder), "steps": self.steps}
