"""Changes what people write about a job: name, notes, tags, star, group, and the priority while it waits."""

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.jobs import repository, service
from trellis_api.jobs.errors import JobNotQueued, TooManyTags
from trellis_api.jobs.models import Job
from trellis_api.jobs.schemas import MAX_TAGS, JobUpdate


def update(session: Session, *, job_id: str, changes: JobUpdate) -> Job:
    """Apply the given fields, all or none; raises ``JobNotQueued`` and ``TooManyTags``."""
    job = service.get_locked_job(session, job_id=job_id)
    if changes.priority is not None and changes.priority != job.priority:
        if job.state != JobState.QUEUED:
            raise JobNotQueued(
                f"The job is {job.state.value}; only queued jobs have a priority.",
                {"state": job.state.value},
            )
        job.priority = changes.priority
        # Among the jobs of another priority it stands by its age.
        job.ordered_at = None
    if changes.name is not None:
        job.name = changes.name
    if changes.group is not None:
        job.group = changes.group or None
    if changes.notes is not None:
        job.notes = changes.notes
    if changes.is_starred is not None:
        job.is_starred = changes.is_starred
    session.add(job)
    _change_tags(session, job=job, changes=changes)
    service.announce(session, job=job)
    session.flush()
    return job


def _change_tags(session: Session, *, job: Job, changes: JobUpdate) -> None:
    current = repository.map_tags(session, job_ids=[job.id]).get(job.id, [])
    wanted = {*(current if changes.tags is None else changes.tags), *changes.add_tags} - {
        *changes.remove_tags
    }
    if len(wanted) > MAX_TAGS:
        raise TooManyTags(f"A job can have at most {MAX_TAGS} tags, not {len(wanted)}.")
    if wanted != set(current):
        repository.replace_tags(session, job_id=job.id, tags=sorted(wanted))
