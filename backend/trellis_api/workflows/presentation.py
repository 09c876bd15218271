"""Workflow files with the jobs that trained them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sqlmodel import Session

from trellis_api.core.pagination import Page
from trellis_api.core.provided import Provided
from trellis_api.core.references import NamedReference
from trellis_api.core.uses import WORKFLOWS, list_labels
from trellis_api.workflows.files import FILES
from trellis_api.workflows.schemas import WorkflowListed
from trellis_api.workflows.service import PARAMETER

#: Jobs that are named beside a file; the list of jobs has all of them.
_SHOWN = 3


class Trained(Protocol):
    """Jobs of any state that have trained with a file: how many, and the newest of them."""

    @property
    def count(self) -> int: ...
    @property
    def newest(self) -> Sequence[NamedReference]: ...


#: By file, of those that have some: asked with the parameter's name, its values and how many are named.
SUMMARISE_JOBS: Provided[[Session, str, Collection[str], int], Mapping[str, Trained]] = Provided(
    "jobs that trained with a workflow"
)


def list_page(session: Session, *, cursor: str | None, limit: int) -> Page[WorkflowListed]:
    """List one page, newest first."""
    page = FILES.list(session, cursor=cursor, limit=limit)
    ids = [file.id for file in page.items]
    users = WORKFLOWS.map(session, ids)
    jobs = SUMMARISE_JOBS(session, PARAMETER, ids, _SHOWN)
    items = [
        WorkflowListed(
            **file.model_dump(),
            job_count=jobs[file.id].count if file.id in jobs else 0,
            jobs=list(jobs[file.id].newest) if file.id in jobs else [],
            used_by=list_labels(users[file.id]),
        )
        for file in page.items
    ]
    return Page(items=items, next_cursor=page.next_cursor)
