"""``/votes``: votes on pairs of responses, win rates, and preference datasets."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Path, Query

from trellis_api.auth.dependencies import UserDep
from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, Page
from trellis_api.data_tasks.service import message_for
from trellis_api.datasets import given_rows, imports
from trellis_api.datasets import service as datasets
from trellis_api.datasets.schemas import DatasetRead, ImportCreate
from trellis_api.votes import repository, service
from trellis_api.votes.schemas import (
    ModelName,
    VoteCreate,
    VoteDatasetCreate,
    VoteFilter,
    VoteRead,
    WinRates,
)

#: A vote has whole conversations: fewer of them than of what other lists show.
_MAX_PAGE_SIZE = 50
CONFLICT: dict[int | str, dict[str, Any]] = {409: ERROR_RESPONSES[409]}
router = APIRouter(prefix="/votes", tags=["votes"], responses=ERROR_RESPONSES)
VoteId = Annotated[str, Path(description="Vote ID.", pattern=id_pattern(repository.PREFIX))]
Models = Annotated[
    list[ModelName] | None,
    Query(
        alias="model",
        max_length=2,
        description="Votes on this model, or between these two: names as in `/v1/models`, or IDs.",
    ),
]
BlindOnly = Annotated[bool, Query(description="Only blind votes.")]


@router.post("", status_code=201, summary="Vote")
def add_vote(body: VoteCreate, session: WriteSession, user: UserDep) -> VoteRead:
    """Record which of two responses to the same messages is better."""
    return service.present(service.add(session, request=body, voter=user.name))


@router.get("", summary="List votes")
def list_votes(
    session: ReadSession,
    model: Models = None,
    blind_only: BlindOnly = False,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=_MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[VoteRead]:
    """List votes, newest first."""
    wanted = VoteFilter(models=model or [], blind_only=blind_only)
    return service.list_page(session, wanted, cursor=cursor, limit=limit)


@router.get("/win-rates", summary="Win rates of models against each other")
def read_win_rates(session: ReadSession, model: Models = None, blind_only: BlindOnly = False) -> WinRates:
    """Return the win rate of each pair of models, with 95% CIs."""
    return service.rate(session, VoteFilter(models=model or [], blind_only=blind_only))


@router.post("/dataset", status_code=201, summary="Create a dataset from votes", responses=CONFLICT)
def make_vote_dataset(
    body: VoteDatasetCreate,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DatasetRead:
    """Create preference pairs: prompt, chosen and rejected response of each decisive vote."""
    with database.read() as session:
        upload = service.write_pairs(session, settings, body, filename="votes.jsonl")
    with given_rows.importing(settings, upload) as (source, origin), database.write() as session:
        request = ImportCreate(name=body.name, description=body.description, source=source)
        dataset, task = imports.import_new(session, request, origin)
        found = datasets.present(session, dataset)
    tasks.send_later(background, message_for(task))
    return found


@router.delete("/{vote_id}", status_code=204, summary="Delete a vote")
def delete_vote(vote_id: VoteId, session: WriteSession) -> None:
    """Delete a vote; datasets created from it are kept."""
    service.delete(session, vote_id=vote_id)
