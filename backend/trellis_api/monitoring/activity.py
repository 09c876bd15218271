"""What came of the latest jobs, and what is wrong with those that run."""

from collections.abc import Sequence

from sqlmodel import Session

from trellis_api.core.references import NamedReference
from trellis_api.jobs import presentation
from trellis_api.jobs.alarms.presentation import present_alarm
from trellis_api.jobs.alarms.repository import list_active_of_unfinished
from trellis_api.jobs.metrics import headline
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import map_jobs
from trellis_api.jobs.schemas import JobRead
from trellis_api.monitoring import repository
from trellis_api.monitoring.schemas import ActiveAlarm, ActivityRead, FinishedJob

_MOST_ALARMS = 20


def read_activity(session: Session, *, limit: int) -> ActivityRead:
    """Read finished trainings with their parents, and the active alarms of unfinished jobs."""
    finished = repository.list_recently_finished(session, limit=limit)
    parents = map_jobs(session, job_ids={job.cloned_from for job in finished if job.cloned_from})
    shown = _present(session, [*finished, *parents.values()])
    alarms = list_active_of_unfinished(session, limit=_MOST_ALARMS)
    return ActivityRead(
        finished=[
            FinishedJob(job=shown[job.id], parent=shown.get(job.cloned_from) if job.cloned_from else None)
            for job in finished
        ],
        alarms=[
            ActiveAlarm(job=NamedReference(id=row.job_id, name=name), alarm=present_alarm(row))
            for row, name in alarms
        ],
    )


def _present(session: Session, jobs: Sequence[Job]) -> dict[str, JobRead]:
    each_once = list({job.id: job for job in jobs}.values())
    metrics = headline.summarise(session, jobs=each_once)
    return {job.id: job for job in presentation.present_all(session, jobs=each_once, metrics=metrics)}
