"""The Celery tasks of the evaluations domain. Each does one short piece of work; none waits for a run."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.evaluations import finish, install, queue_due, tidy, write_reports
from trellis_workers.jobs import launch


@app.task(name=tasks.FINISH_EVALUATIONS)
def finish_evaluations_that_are_over() -> None:
    """Record what evaluations left; room that became free is given on at once."""
    if finish.finish_evaluations():
        launch.launch_queued()


@app.task(name=tasks.QUEUE_EVALUATIONS)
def queue_due_evaluations() -> None:
    """Measure the checkpoints that are due, and take in the scores of those that were measured."""
    if queue_due.queue_due():
        launch.launch_queued()


@app.task(name=tasks.INSTALL_BENCHMARKS)
def install_benchmarks() -> None:
    """Bring the files that are waited for (without a time limit); who waited for them is launched at once."""
    if install.install_benchmarks():
        launch.launch_queued()


@app.task(name=tasks.WRITE_REPORTS)
def write_waiting_reports() -> None:
    """Write the reports that wait (without a time limit: a browser prints them)."""
    write_reports.write_reports()


@app.task(name=tasks.TIDY_EVALUATIONS)
def tidy_deleted() -> None:
    """Remove the files of deleted evaluations and reports."""
    tidy.tidy_evaluations()
