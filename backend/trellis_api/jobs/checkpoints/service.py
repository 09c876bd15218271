"""What becomes of checkpoints: which are the best, which are kept, which make room for others.

Retention is decided here, in the transaction that takes a new checkpoint in, and not by the
trainers, which would remove the best one with the rest. A checkpoint is given up by its row
(``pruned_at``), so that nobody resumes from it or exports it any more; a worker removes the files
(``trellis_workers/jobs/prune.py``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlmodel import Session
from trellis_contracts.states import ACTIVE
from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.core.columns import utc_now
from trellis_api.core.pagination import InvalidCursor, decode_cursor, encode_cursor
from trellis_api.core.provided import Provided
from trellis_api.jobs import configuration, repository, service
from trellis_api.jobs.checkpoints import metrics as checkpoint_metrics
from trellis_api.jobs.checkpoints.best import Criterion, choose_criterion, find_best
from trellis_api.jobs.checkpoints.metrics import Earlier, Metrics
from trellis_api.jobs.checkpoints.schemas import BestCheckpoint, CheckpointPage, CheckpointRead
from trellis_api.jobs.errors import CheckpointInUse, CheckpointNotFound
from trellis_api.jobs.evaluating import presentation
from trellis_api.jobs.evaluating import repository as evaluating
from trellis_api.jobs.evaluating.schemas import CheckpointEvaluation
from trellis_api.jobs.metrics.direction import Mode
from trellis_api.jobs.models import TRAIN, Checkpoint, Job
from trellis_api.models.repository import list_exported_steps

KEEP_PARAMETER = "keep_checkpoints"
Reason = Literal["pinned", "best", "resumed", "exporting", "evaluating", "serving", "model"]
Use = Literal["pinned", "exporting", "evaluating", "serving", "resumed", "writing"]
_USES: dict[Use, str] = {
    "pinned": "The checkpoint is pinned. Unpin it first.",
    "exporting": "The checkpoint is being exported. Wait, or stop the export.",
    "evaluating": "The checkpoint is being evaluated. Wait, or cancel the evaluation.",
    "serving": "The checkpoint is being served, or called by a job. Stop the endpoint or the job.",
    "resumed": "The running attempt resumed from this checkpoint.",
    "writing": "The run may still be writing this checkpoint.",
}
_READERS: tuple[Use, ...] = ("exporting", "evaluating", "serving")
#: Of a job: steps whose checkpoints are being served, or called by unfinished jobs.
LIST_SERVED_STEPS: Provided[[Session, str], set[int]] = Provided("steps of checkpoints that are served")
#: Files that tell of an adapter, in the places where the trainers put them.
_ADAPTER_FILES = ("lora_train_meta.json", "adapter_config.json")
_FOLDERS = ("", "actor", "huggingface", "actor/huggingface", "lora_adapter")


@dataclass(frozen=True)
class CheckpointSummary:
    """A job's checkpoints, what was measured of them, and why some are not removed to make room."""

    rows: Sequence[Checkpoint]
    metrics: dict[int, Metrics]
    earlier: Earlier
    criterion: Criterion | None
    best_step: int | None
    kept: dict[int, list[Reason]]
    evaluations: dict[int, CheckpointEvaluation]


def summarise(
    session: Session, *, job: Job, metric: str | None = None, mode: Mode | None = None
) -> CheckpointSummary:
    """Summarize the checkpoints of a job; the best is one of those that are still there."""
    rows = repository.list_checkpoints(session, job_id=job.id)
    metrics, earlier = checkpoint_metrics.read_with_earlier(
        session, job=job, checkpoints=rows, more=(metric, _promised(job))
    )
    there = [row for row in rows if row.pruned_at is None]
    best_steps = _find_best_steps(job, there, metrics)
    criterion, best_step = _judge(job, there, metrics, metric=metric, mode=mode)
    kept = _explain_keeping(session, job=job, rows=there, best_steps=best_steps)
    evaluations = presentation.map_evaluations(session, job=job)
    return CheckpointSummary(rows, metrics, earlier, criterion, best_step, kept, evaluations)


def find_best_step(
    job: Job,
    rows: Iterable[Checkpoint],
    metrics: dict[int, Metrics],
    *,
    metric: str | None = None,
    mode: Mode | None = None,
) -> int | None:
    """Return the step of the best of some checkpoints, or None if nothing was measured."""
    return _judge(job, rows, metrics, metric=metric, mode=mode)[1]


def _judge(
    job: Job,
    rows: Iterable[Checkpoint],
    metrics: dict[int, Metrics],
    *,
    metric: str | None,
    mode: Mode | None,
) -> tuple[Criterion | None, int | None]:
    """Return the criterion that some checkpoints are compared by, and the step of the best one."""
    values = {row.step: metrics[row.step] for row in rows}
    reported = {key for measured in values.values() for key in measured}
    criterion = choose_criterion(job, reported=reported, metric=metric, mode=mode)
    return criterion, find_best(values, criterion)


def list_page(
    session: Session,
    *,
    job_id: str,
    data_root: Path,
    metric: str | None,
    mode: Mode | None,
    cursor: str | None,
    limit: int,
) -> CheckpointPage:
    """List one page of checkpoints, newest step first; the best is that of all pages."""
    before = _decode_step(cursor) if cursor else None
    job = service.get_job(session, job_id=job_id)
    found = summarise(session, job=job, metric=metric, mode=mode)
    rows = [row for row in found.rows if before is None or row.step < before]
    shown = rows[:limit]
    return CheckpointPage(
        items=[_present(job, row, found, data_root=data_root) for row in shown],
        next_cursor=encode_cursor(shown[-1].step) if len(rows) > limit else None,
        best=_present_best(found),
    )


def read_one(session: Session, *, job_id: str, step: int, data_root: Path) -> CheckpointRead:
    """Read one checkpoint as clients see it."""
    job = service.get_job(session, job_id=job_id)
    row = get_checkpoint(session, job_id=job_id, step=step)
    return _present(job, row, summarise(session, job=job), data_root=data_root)


def get_checkpoint(session: Session, *, job_id: str, step: int) -> Checkpoint:
    """Return the checkpoint, removed or not; ``CheckpointNotFound`` without one."""
    row = repository.find_checkpoint(session, job_id=job_id, step=step)
    if row is None:
        raise CheckpointNotFound(f"The job has no checkpoint at step {step}.")
    return row


def set_kept(session: Session, *, job_id: str, step: int, is_kept: bool) -> None:
    """Pin a checkpoint, or let it go: what is not pinned may make room at once."""
    job = service.get_locked_job(session, job_id=job_id)
    row = service.get_usable_checkpoint(session, job_id=job_id, step=step)
    row.is_kept = is_kept
    session.add(row)
    session.flush()
    if not is_kept:
        apply_retention(session, job=job)


def delete(session: Session, *, job_id: str, step: int) -> None:
    """Give a checkpoint up because a person says so; deleting twice is fine."""
    job = service.get_locked_job(session, job_id=job_id)
    row = get_checkpoint(session, job_id=job_id, step=step)
    if row.pruned_at is not None:
        return
    reason = _find_use(job, row, _list_readers(session, job_id=job_id, step=step))
    if reason is not None:
        raise CheckpointInUse(_USES[reason], {"reason": reason})
    _give_up(session, job, [row])


def apply_retention(session: Session, *, job: Job) -> list[int]:
    """Give up what is older than the last N and has no reason to stay; the steps. The job is locked."""
    keep = read_keep_count(session, job=job) if job.kind == TRAIN else None
    if keep is None:
        return []
    rows = [row for row in repository.list_checkpoints(session, job_id=job.id) if row.pruned_at is None]
    # What a resumed job left behind its checkpoint is older than all that it saved since.
    older = sorted(rows, key=lambda row: (row.attempt, row.step), reverse=True)[keep:]
    if not older:
        return []
    # Of those that are still there only: a long run has given up many more.
    metrics = checkpoint_metrics.read(session, job=job, checkpoints=rows, more=(_promised(job),))
    best_steps = _find_best_steps(job, rows, metrics)
    kept = _explain_keeping(session, job=job, rows=rows, best_steps=best_steps)
    doomed = [row for row in older if not kept[row.step] and not service.may_be_written(job, row.step)]
    _give_up(session, job, doomed)
    return [row.step for row in doomed]


def read_keep_count(session: Session, *, job: Job) -> int | None:
    """Return how many of the last checkpoints the job keeps, as it was composed; None for all."""
    stored = configuration.find_params(session, job_id=job.id)
    if stored is not None:
        given = stored.get(KEEP_PARAMETER)
    else:
        given = job.params.get(KEEP_PARAMETER)
        if given is None:
            given = _default_keep_count(job)
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        return max(1, int(given))
    except ValueError:  # the launch has refused it
        return None


def holds_adapter(folder: Path | None) -> bool:
    """Tell whether a checkpoint's folder holds a LoRA adapter."""
    return folder is not None and find_adapter_file(folder) is not None


def find_adapter_file(folder: Path) -> Path | None:
    """Return the file in which a trainer describes the adapter of a checkpoint; None for whole weights."""
    places = (folder / below / name for name in _ADAPTER_FILES for below in _FOLDERS)
    return next((path for path in places if path.is_file()), None)


def _default_keep_count(job: Job) -> object:
    try:
        recipe = get_recipe(job.recipe)
    except UnknownRecipe:
        return None
    preset = next((each for each in recipe.presets if each.id == job.preset), None)
    if preset is not None and KEEP_PARAMETER in preset.params:
        return preset.params[KEEP_PARAMETER]
    parameter = recipe.parameter(KEEP_PARAMETER)
    return parameter.default if parameter else None


def _find_best_steps(job: Job, rows: Sequence[Checkpoint], metrics: dict[int, Metrics]) -> set[int | None]:
    """Return the best step by the job's own metric, and the best by that of its requested export."""
    best = {find_best_step(job, rows, metrics)}
    if (promised := _promised(job)) is not None:
        mode = (job.export_as or {}).get("mode")
        best.add(find_best_step(job, rows, metrics, metric=promised, mode=mode))
    return best


def _promised(job: Job) -> str | None:
    """Return the metric that selects the checkpoint to export, until the export is queued or has failed."""
    wanted = job.export_as or {}
    return None if wanted.get("job_id") or wanted.get("problem") else wanted.get("best_by")


def _explain_keeping(
    session: Session, *, job: Job, rows: Sequence[Checkpoint], best_steps: set[int | None]
) -> dict[int, list[Reason]]:
    exporting = repository.list_exporting_steps(session, job_id=job.id)
    measured = evaluating.list_evaluating_steps(session, job_id=job.id)
    served = LIST_SERVED_STEPS(session, job.id)
    in_models = list_exported_steps(session, job_id=job.id)
    kept: dict[int, list[Reason]] = {}
    for row in rows:
        reasons: list[tuple[Reason, bool]] = [
            ("pinned", row.is_kept),
            ("best", row.step in best_steps),
            ("resumed", row.step == job.resume_step),
            ("exporting", row.step in exporting),
            ("evaluating", row.step in measured),
            ("serving", row.step in served),
            ("model", row.step in in_models),
        ]
        kept[row.step] = [reason for reason, holds in reasons if holds]
    return kept


def _list_readers(session: Session, *, job_id: str, step: int) -> list[Use]:
    """List the uses that read the checkpoint, or wait to."""
    readers: list[Use] = []
    if step in repository.list_exporting_steps(session, job_id=job_id):
        readers.append("exporting")
    if step in evaluating.list_evaluating_steps(session, job_id=job_id):
        readers.append("evaluating")
    if step in LIST_SERVED_STEPS(session, job_id):
        readers.append("serving")
    return readers


def _find_use(job: Job, row: Checkpoint, readers: Sequence[Use]) -> Use | None:
    """Return the use that prevents removing a checkpoint by hand, if there is one."""
    if row.is_kept:
        return "pinned"
    if readers:
        return readers[0]
    if job.resume_step == row.step and job.state in ACTIVE:
        return "resumed"
    return "writing" if service.may_be_written(job, row.step) else None


def _give_up(session: Session, job: Job, rows: Sequence[Checkpoint]) -> None:
    if not rows:
        return
    for row in rows:
        row.pruned_at, row.removed_at = utc_now(), None
        session.add(row)
    service.announce(session, job=job)
    session.flush()


def _present(job: Job, row: Checkpoint, found: CheckpointSummary, *, data_root: Path) -> CheckpointRead:
    is_pruned = row.pruned_at is not None
    folder = None if is_pruned else service.find_folder(row, row.path, data_root=data_root)
    kept_because = found.kept.get(row.step, [])
    readers: list[Use] = [use for use in _READERS if use in kept_because]
    earlier = found.earlier[row.step]
    return CheckpointRead(
        step=row.step,
        attempt=row.attempt,
        path=_shorten_path(row.path, data_root) or row.path,
        hf_path=None if is_pruned else _shorten_path(row.hf_path, data_root),
        size_bytes=0 if row.removed_at is not None else row.size_bytes,
        metrics={key: value for key, (_at, value) in earlier.items()} | found.metrics[row.step],
        metric_steps={key: at for key, (at, _value) in earlier.items()},
        created_at=row.created_at,
        is_best=row.step == found.best_step,
        is_kept=row.is_kept,
        is_pruned=is_pruned,
        kept_because=kept_because,
        can_resume=folder is not None and job.state in service.RESUMABLE,
        can_export=folder is not None and not service.may_be_overwritten(job, row),
        can_delete=not is_pruned and _find_use(job, row, readers) is None,
        evaluation=found.evaluations.get(row.step),
        has_adapter=holds_adapter(folder),
    )


def _present_best(found: CheckpointSummary) -> BestCheckpoint | None:
    criterion = found.criterion
    if criterion is None:
        return None
    return BestCheckpoint(metric=criterion.metric, mode=criterion.mode, step=found.best_step)


def _decode_step(cursor: str) -> int:
    (step,) = decode_cursor(cursor, parts=1)
    if not isinstance(step, int) or isinstance(step, bool):
        raise InvalidCursor("Invalid cursor.")
    return step


def _shorten_path(path: str | None, data_root: Path) -> str | None:
    if path is None:
        return None
    absolute = Path(path)
    return str(absolute.relative_to(data_root)) if absolute.is_relative_to(data_root) else path
