"""Decides about reward files and dry runs."""

import logging
from collections.abc import Mapping

from sqlmodel import Session
from trellis_contracts.dry_run import DryRunProgress, DryRunResult, DryRunState
from trellis_contracts.recipe import DataFormat
from trellis_contracts.rewards import RewardTerm
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.rewards import check_mixture

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.references import NamedReference
from trellis_api.core.settings import Settings
from trellis_api.core.uses import REWARD_FILES
from trellis_api.datasets.repository import lock_dataset, map_dataset_names
from trellis_api.datasets.view import DatasetView
from trellis_api.jobs import service as jobs_service
from trellis_api.jobs.fit import data as data_fit
from trellis_api.jobs.fit.data import Choice
from trellis_api.jobs.fit.data_selection import DataSelection, require_rows
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.rewards import repository
from trellis_api.rewards.availability import find_obstacle
from trellis_api.rewards.errors import (
    DryRunFinished,
    DryRunNotFound,
    InvalidRewards,
    NoRollouts,
    RewardUnavailable,
)
from trellis_api.rewards.files import FILES
from trellis_api.rewards.models import DryRun, RewardFile
from trellis_api.rewards.resources import find_resources, keep_resources
from trellis_api.rewards.schemas import DryRunCreate, DryRunRead, RewardFileCreate
from trellis_api.rewards.source_check import find_problem

log = logging.getLogger(__name__)
#: Finished dry runs that are kept.
KEPT_DRY_RUNS = 200
#: Rewards score answers to prompts: rows are read as this recipe, like all that use rewards, reads them.
_READER = "grpo"
_CANCELLABLE = (DryRunState.QUEUED, DryRunState.RUNNING)


def add_file(session: Session, *, request: RewardFileCreate) -> RewardFile:
    """Keep a file whose syntax is right; nothing of it is executed."""
    problem = find_problem(request.code)
    if problem:
        raise FILES.refuse([problem])
    return FILES.add(session, name=request.name, code=request.code)


def delete_file(session: Session, *, file_id: str) -> None:
    """Delete a file; refused while unfinished work uses it."""
    # Locked before the jobs are looked at: a job that is being created holds it, and is seen afterwards.
    FILES.lock(session, file_id)
    file = FILES.get(session, file_id)
    users = sorted(use.label for use in REWARD_FILES.find(session, file_id))
    FILES.delete(session, file, users=users)


def start_dry_run(session: Session, settings: Settings, *, request: DryRunCreate) -> DryRun:
    """Queue a dry run; everything that is wrong with the request raises here."""
    terms = check_terms(session, settings, request.rewards)
    keep_resources(session, terms=terms)
    find_resources(session, settings, terms=terms, field_name="rewards")
    lock_dataset(session, dataset_id=request.dataset, is_shared=True)  # until the row is written
    dataset = _require_dataset(session, request, settings)
    step = _require_rollouts(session, request)
    dry_run = DryRun(
        id=new_id("dry"),
        rewards=[term.model_dump() for term in terms],
        dataset_id=dataset.id,
        dataset_version=dataset.version,
        dataset_split=dataset.split,
        columns=request.columns,
        row_count=request.rows,
        seed=request.seed,
        job_id=request.job,
        step=step,
    )
    repository.add_dry_run(session, dry_run)
    repository.forget_old_dry_runs(session, kept=KEPT_DRY_RUNS)
    return dry_run


def check_terms(session: Session, settings: Settings, rewards: list[RewardTerm]) -> list[RewardTerm]:
    """Return the terms with defaults filled in; raises for what is wrong or cannot be used here."""
    terms, issues = check_mixture([term.model_dump() for term in rewards], field="rewards")
    if issues:
        raise InvalidRewards(issues[0].message, [issue.model_dump() for issue in issues])
    for index, term in enumerate(terms):
        obstacle = find_obstacle(session, term.name, settings)
        if obstacle:
            details = [
                {"code": RewardUnavailable.code, "field": f"rewards.{index}.name", "message": obstacle.en}
            ]
            raise RewardUnavailable(obstacle.en, details)
    return terms


def get_dry_run(session: Session, *, dry_run_id: str) -> DryRun:
    """Return the dry run; 404 if there is none."""
    dry_run = repository.find_dry_run(session, dry_run_id=dry_run_id)
    if dry_run is None:
        raise DryRunNotFound(f"Dry run '{dry_run_id}' not found.")
    return dry_run


def list_dry_runs(session: Session, *, cursor: str | None, limit: int) -> Page[DryRunRead]:
    """List one page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_dry_runs(session, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    names = map_dataset_names(session, dataset_ids={row.dataset_id for row in shown})
    return Page(items=[_describe(row, names) for row in shown], next_cursor=next_cursor)


def present_dry_run(session: Session, dry_run: DryRun) -> DryRunRead:
    """Present a dry run as clients read it."""
    return _describe(dry_run, map_dataset_names(session, dataset_ids=[dry_run.dataset_id]))


def cancel_dry_run(session: Session, *, dry_run_id: str) -> DryRun:
    """End a dry run; the worker that carries it out sees it within a second."""
    dry_run = get_dry_run(session, dry_run_id=dry_run_id)
    if dry_run.state not in _CANCELLABLE:
        raise DryRunFinished(f"The dry run has already {dry_run.state}.")
    settle_dry_run(session, dry_run=dry_run, state=DryRunState.CANCELLED)
    return dry_run


def delete_dry_run(session: Session, *, dry_run_id: str) -> None:
    """Delete a dry run; a running one is stopped."""
    get_dry_run(session, dry_run_id=dry_run_id)
    repository.delete_dry_run(session, dry_run_id=dry_run_id)


def settle_dry_run(
    session: Session,
    *,
    dry_run: DryRun,
    state: DryRunState,
    result: DryRunResult | None = None,
    reason: str | None = None,
    cause: str | None = None,
) -> None:
    """Note how a dry run ended."""
    dry_run.state = state.value
    dry_run.finished_at = utc_now()
    dry_run.reason, dry_run.cause = reason, cause
    if result is not None:
        dry_run.result = result.model_dump(mode="json")
        dry_run.done = dry_run.total
    session.add(dry_run)
    session.flush()
    log.info("dry run %s has %s", dry_run.id, state)


def read_dataset(dataset: DatasetView, columns: Mapping[str, str]) -> tuple[DataFormat, dict[str, str]]:
    """Choose the format and the columns that a dry run reads the rows with, as a job would."""
    return data_fit.read_for(get_recipe(_READER), dataset, Choice(columns))


def _require_dataset(session: Session, request: DryRunCreate, settings: Settings) -> DatasetView:
    wanted = DataSelection("dataset", request.dataset, request.dataset_version, request.dataset_split)
    dataset = require_rows(session, settings, wanted)
    found = data_fit.fit(get_recipe(_READER), dataset, Choice(request.columns))
    if not found.fits:
        raise data_fit.refuse("a recipe with rewards", dataset, found, field="dataset")
    return dataset


def _require_rollouts(session: Session, request: DryRunCreate) -> int | None:
    """Return the step whose recorded responses are scored too; None without a job."""
    if request.job is None:
        return None
    jobs_service.get_job(session, job_id=request.job)
    step = request.step
    if step is None:
        step = rollout_store.find_newest_step(session, job_id=request.job, split="train")
    if step is None or not rollout_store.list_marks(session, job_id=request.job, step=step, split="train"):
        raise NoRollouts(
            "The job has recorded no responses at this step.", {"job": request.job, "step": step}
        )
    return step


def _describe(dry_run: DryRun, dataset_names: dict[str, str]) -> DryRunRead:
    return DryRunRead(
        id=dry_run.id,
        state=DryRunState(dry_run.state),
        progress=DryRunProgress(done=dry_run.done, total=dry_run.total),
        rewards=[RewardTerm.model_validate(term) for term in dry_run.rewards],
        dataset=NamedReference(id=dry_run.dataset_id, name=dataset_names.get(dry_run.dataset_id)),
        dataset_version=dry_run.dataset_version,
        dataset_split=dry_run.dataset_split,
        columns=dry_run.columns,
        rows=dry_run.row_count,
        seed=dry_run.seed,
        job=dry_run.job_id,
        step=dry_run.step,
        created_at=dry_run.created_at,
        started_at=dry_run.started_at,
        finished_at=dry_run.finished_at,
        reason=dry_run.reason,
        cause=dry_run.cause,
        can_cancel=dry_run.state in _CANCELLABLE,
        result=None if dry_run.result is None else DryRunResult.model_validate(dry_run.result),
    )
