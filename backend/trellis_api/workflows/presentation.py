"""Workflow files with the jobs that trained them."""

from sqlalchemy import func, select
from sqlmodel import Session, col

from trellis_api.core.pagination import Page
from trellis_api.core.references import NamedReference
from trellis_api.job_pipelines.uses import map_uses
from trellis_api.jobs.models import Job
from trellis_api.workflows.files import FILES
from trellis_api.workflows.schemas import WorkflowListed
from trellis_api.workflows.service import PARAMETER

#: Jobs that are named beside a file; the list of jobs has all of them.
_SHOWN = 3


def list_page(session: Session, *, cursor: str | None, limit: int) -> Page[WorkflowListed]:
    """One page, newest first."""
    page = FILES.list(session, cursor=cursor, limit=limit)
    users = map_uses(session, parameter=PARAMETER)
    counts, newest = _map_jobs(session, [file.id for file in page.items])
    items = [
        WorkflowListed(
            **file.model_dump(),
            job_count=counts.get(file.id, 0),
            jobs=newest.get(file.id, []),
            used_by=users.get(file.id, []),
        )
        for file in page.items
    ]
    return Page(items=items, next_cursor=page.next_cursor)


def _map_jobs(session: Session, ids: list[str]) -> tuple[dict[str, int], dict[str, list[NamedReference]]]:
    """How many jobs each file has, and the newest of them; the others stay in the database."""
    file_id = col(Job.params)[PARAMETER].as_string()
    chosen = select(file_id.label("file_id"), col(Job.id), col(Job.name), col(Job.created_at))
    used = chosen.where(file_id.in_(ids)).subquery().c
    newest_first = (used.created_at.desc(), used.id.desc())
    place = func.row_number().over(partition_by=used.file_id, order_by=newest_first)
    total = func.count().over(partition_by=used.file_id)
    numbered = select(used.file_id, used.id, used.name, total.label("total"), place.label("place"))
    found = numbered.subquery().c
    query = select(found.file_id, found.id, found.name, found.total)
    counts: dict[str, int] = {}
    newest: dict[str, list[NamedReference]] = {}
    for workflow_id, job_id, name, count in session.execute(
        query.where(found.place <= _SHOWN).order_by(found.place)
    ):
        counts[workflow_id] = count
        newest.setdefault(workflow_id, []).append(NamedReference(id=job_id, name=name))
    return counts, newest
