"""The result file of a fine-tuning job: its figures step by step, written when somebody asks for it."""

import csv
import io

from sqlmodel import Session, col, select

from trellis_api.fine_tuning import figures, repository
from trellis_api.fine_tuning.errors import FileNotFound
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.schemas import FileObject
from trellis_api.jobs.metrics.query import find_series, read_curves
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import find_job

PURPOSE = "fine-tune-results"
FILENAME = "step_metrics.csv"
_BEGIN, _END = "file-", "-results"
#: Steps of a curve; longer ones are thinned to their extremes, as on the page.
_MAX_POINTS = 5_000
#: Files of one page: each is written to tell its size.
_MAX_LISTED = 100


def name_file(row: FineTuningJob) -> str:
    """Return the ID of a job's result file."""
    return f"{_BEGIN}{row.id.removeprefix('ftjob-')}{_END}"


def find(session: Session, *, file_id: str) -> tuple[FineTuningJob, Job] | None:
    """Return the job that a result file belongs to; None for other files, and if nothing has run."""
    if not (file_id.startswith(_BEGIN) and file_id.endswith(_END)):
        return None
    row = repository.find_job(session, job_id=f"ftjob-{file_id[len(_BEGIN) : -len(_END)]}")
    job = find_job(session, job_id=row.job_id) if row is not None and row.job_id else None
    return (row, job) if row is not None and job is not None else None


def list_page(
    session: Session, *, after: str | None, limit: int, is_ascending: bool
) -> tuple[list[FileObject], bool]:
    """List the result files of finished trainings, in the order of the jobs, and whether there are more."""
    behind = find(session, file_id=after) if after else None
    if after and behind is None:
        raise FileNotFound(after)
    limit = min(limit, _MAX_LISTED)
    ended = select(Job.id).where(col(Job.finished_at).is_not(None))
    rows = repository.list_rows(
        session,
        FineTuningJob,
        after=behind[0] if behind else None,
        limit=limit + 1,
        is_ascending=is_ascending,
        conditions=[col(FineTuningJob.job_id).in_(ended)],
    )
    jobs = repository.map_platform_jobs(session, rows)
    shown = [present(session, row, jobs[row.job_id]) for row in rows[:limit] if row.job_id in jobs]
    return shown, len(rows) > limit


def write(session: Session, job: Job) -> bytes:
    """Write one line per step, with the metrics that were measured there."""
    keys = figures.choose_keys(find_series(session.connection(), job_id=job.id))
    steps: dict[int, dict[str, float | None]] = {}
    for curve in read_curves(session, job=job, keys=keys, max_points=_MAX_POINTS):
        for step, value in curve.points:
            steps.setdefault(step, {})[curve.key] = value
    rows = {step: figures.rename(values) for step, values in sorted(steps.items())}
    columns = [name for name in figures.NAMES if any(name in row for row in rows.values())]
    out = io.StringIO()
    writer = csv.DictWriter(out, ["step", *columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"step": step, **row} for step, row in rows.items())
    return out.getvalue().encode()


def present(session: Session, row: FineTuningJob, job: Job) -> FileObject:
    """Present the result file as clients see it."""
    ended = job.finished_at or job.created_at
    return FileObject(
        id=name_file(row),
        bytes=len(write(session, job)),
        created_at=int(ended.timestamp()),
        filename=FILENAME,
        purpose=PURPOSE,
        status="processed",
    )
