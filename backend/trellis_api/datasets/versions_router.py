"""``/datasets/{dataset_id}/versions``, branches, tags, rollback and differences."""

from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Query

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import NO_NUL, QueryText
from trellis_api.data_tasks.service import message_for
from trellis_api.datasets import comparing, history
from trellis_api.datasets.schemas import (
    DiffCreate,
    DiffRead,
    DiffRows,
    RefCreate,
    RefRead,
    RefsRead,
    RollBack,
    VersionDetail,
    VersionRead,
)
from trellis_api.datasets.store import writing

router = APIRouter(prefix="/datasets/{dataset_id}", tags=["dataset versions"], responses=ERROR_RESPONSES)

Side = Annotated[str, Query(max_length=100, pattern=NO_NUL, description="Version, branch or tag.")]
Key = Annotated[QueryText | None, Query(description="Key column.")]


@router.get("/versions")
def list_versions(
    dataset_id: str,
    session: ReadSession,
    branch: Annotated[str | None, Query(max_length=100, description="Only ancestors of its tip.")] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[VersionRead]:
    """List the versions, newest first."""
    return history.list_page(session, dataset_id=dataset_id, branch=branch, cursor=cursor, limit=limit)


@router.get("/versions/{version_id}")
def read_version(
    dataset_id: str, version_id: str, session: ReadSession, settings: SettingsDep
) -> VersionDetail:
    """Return one version: contents, provenance and users."""
    return history.read_detail(session, settings, dataset_id=dataset_id, revision=version_id)


@router.delete("/versions/{version_id}", status_code=204)
def delete_version(dataset_id: str, version_id: str, session: WriteSession) -> None:
    """Delete an unused version; refused for one that is in use, tagged, a tip or a parent."""
    history.delete_version(session, dataset_id=dataset_id, revision=version_id)


@router.get("/refs")
def list_refs(dataset_id: str, session: ReadSession) -> RefsRead:
    """List branches and tags."""
    return history.list_refs(session, dataset_id=dataset_id)


@router.post("/branches", status_code=201)
def create_branch(dataset_id: str, request: RefCreate, session: WriteSession) -> RefRead:
    """Create a branch at a version."""
    return history.present_ref(
        history.create_ref(session, dataset_id=dataset_id, kind="branch", request=request)
    )


@router.delete("/branches/{name}", status_code=204)
def delete_branch(dataset_id: str, name: str, session: WriteSession) -> None:
    """Remove the name; its versions stay in the history. Refused for main."""
    history.delete_ref(session, dataset_id=dataset_id, kind="branch", name=name)


@router.post("/tags", status_code=201)
def create_tag(dataset_id: str, request: RefCreate, session: WriteSession) -> RefRead:
    """Create a tag for a version."""
    return history.present_ref(
        history.create_ref(session, dataset_id=dataset_id, kind="tag", request=request)
    )


@router.delete("/tags/{name}", status_code=204)
def delete_tag(dataset_id: str, name: str, session: WriteSession) -> None:
    """Remove the name."""
    history.delete_ref(session, dataset_id=dataset_id, kind="tag", name=name)


@router.post(
    "/rollback",
    status_code=201,
    responses={507: {"model": ErrorBody, "description": "No room on the disk"}},
)
def roll_back(
    dataset_id: str, request: RollBack, database: DatabaseDep, settings: SettingsDep
) -> VersionRead:
    """Create a version with the rows of an old one; the versions in between stay in the history."""
    # The store first: a transaction must not wait until rows are tidied.
    with writing(settings), database.write() as session:
        row = history.roll_back(session, settings, dataset_id=dataset_id, request=request)
        return history.present(session, row)


@router.post("/diff", status_code=202)
def compute_diff(
    dataset_id: str,
    request: DiffCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DiffRead:
    """Compare two versions; identical requests share one comparison."""
    found, task = comparing.start(session, settings, dataset_id=dataset_id, request=request)
    if task is not None:
        tasks.send_later(background, message_for(task))
    return found


@router.get("/diff")
def read_diff(
    dataset_id: str, session: ReadSession, settings: SettingsDep, before: Side, after: Side, key: Key = None
) -> DiffRead:
    """Return a requested comparison and its result."""
    request = DiffCreate(before=before, after=after, key=key)
    return comparing.read(session, settings, dataset_id=dataset_id, request=request)


@router.get("/diff/rows")
def read_diff_rows(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    before: Side,
    after: Side,
    split: Annotated[str, Query(max_length=100, pattern=NO_NUL)],
    kind: Annotated[Literal["added", "removed", "changed"], Query()],
    key: Key = None,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> DiffRows:
    """Return rows that differ."""
    return comparing.read_rows(
        session,
        settings,
        dataset_id=dataset_id,
        request=DiffCreate(before=before, after=after, key=key),
        split=split,
        kind=kind,
        offset=offset,
        limit=limit,
    )
