"""Exports: a job that writes a checkpoint as a model, asked for by a person or by the end of a training.

request_export                             writes the export job's row, QUEUED
→ trellis_workers/jobs/launch.py           starts it like every job; it needs no slot
→ trellis_train/engines/export.py          writes the model's folder, complete or not at all
→ trellis_workers/jobs/reconcile.py        settles it and registers the model, in one transaction
"""

import logging
from pathlib import Path

from sqlmodel import Session
from trellis_contracts.recipe import Engine
from trellis_contracts.states import ACTIVE, JobState
from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.core.errors import DomainError
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.core.texts import number_name
from trellis_api.jobs import repository, service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.errors import (
    CheckpointInUse,
    CheckpointNotExportable,
    CheckpointNotFound,
    ExportNameTaken,
)
from trellis_api.jobs.evaluating import repository as evaluating
from trellis_api.jobs.evaluating.keys import list_prefixes
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.jobs.exports.training import describe_training
from trellis_api.jobs.models import EXPORT, TRAIN, Checkpoint, Job
from trellis_api.jobs.schemas import ExportAs, ExportCreate
from trellis_api.jobs.storage import check_storage
from trellis_api.models.repository import find_model, find_model_named, lock_model

log = logging.getLogger(__name__)


def request_export(
    session: Session, *, job_id: str, step: int, request: ExportCreate, settings: Settings
) -> Job:
    """Queue the export of a checkpoint; everything that stands against it raises here."""
    check_storage(settings)
    source = service.get_locked_job(session, job_id=job_id)
    if source.kind != TRAIN:
        raise CheckpointNotExportable("Export jobs have no checkpoints.")
    row = service.get_usable_checkpoint(session, job_id=job_id, step=step)
    folder = service.find_folder(row, row.path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotFound(f"The files of the checkpoint at step {step} are missing.")
    if service.may_be_overwritten(source, row):
        raise CheckpointInUse("The resumed run is about to overwrite this checkpoint. Try again later.")
    check_name(session, name=request.name)
    _check_form(session, source=source, folder=folder, request=request)
    return _queue(session, source=source, row=row, request=request)


def check_name(session: Session, *, name: str) -> None:
    """Refuse a name that a model has, or that a waiting export is going to use."""
    promised = {str(job.export["name"]) for job in repository.list_active_exports(session) if job.export}
    if name in promised:
        raise ExportNameTaken(f"An export to a model named '{name}' is already running.", {"name": name})
    if find_model_named(session, name=name) is not None:
        raise ExportNameTaken(f"A model named '{name}' already exists.", {"name": name})


def queue_promised(session: Session, *, job: Job, settings: Settings) -> Job | None:
    """Queue the export that was requested with a training, once, after it has succeeded.

    Runs in the transaction that settles the training, and in those that take in the scores of its
    evaluations, for which it waits where they tell the best checkpoint. What stands against it is
    written beside the request and changes nothing about the training.
    """
    if job.kind != TRAIN or job.state != JobState.SUCCEEDED or not job.export_as:
        return None
    if job.export_as.get("job_id") or job.export_as.get("problem"):
        return None
    if _waits_for_scores(session, job=job):
        return None
    wanted = ExportAs.model_validate({key: job.export_as.get(key) for key in ("name", "best_by", "mode")})
    export, remarks = None, list[str]()
    try:
        with session.begin_nested():
            step, remark = _choose_step(session, job=job, wanted=wanted, data_root=settings.data_root)
            remarks += [remark] if remark else []
            request = ExportCreate(name=find_free_name(session, wanted.name))
            if request.name != wanted.name:
                remarks.append(
                    f"The name '{wanted.name}' was taken in the meantime; the model is named '"
                    f"{request.name}'."
                )
            export = request_export(session, job_id=job.id, step=step, request=request, settings=settings)
    except DomainError as error:
        log.warning("job %s: its export was not queued: %s", job.id, error.message)
        export, remarks = None, [error.message]
    problem = " ".join(remarks) or None
    job.export_as = {**wanted.model_dump(), "job_id": export.id if export else None, "problem": problem}
    session.add(job)
    service.announce(session, job=job)
    session.flush()
    return export


def queue_again(session: Session, *, job: Job, settings: Settings) -> bool:
    """Give the promised export of a finished training another try; False where nothing can be exported.

    One that is under way, or whose model is still there, is the try.
    """
    service.get_locked_job(session, job_id=job.id)
    if job.kind != TRAIN or job.state != JobState.SUCCEEDED or not job.export_as:
        return False
    if _has_export(session, job):
        return True
    job.export_as = {**job.export_as, "job_id": None, "problem": None}
    queue_promised(session, job=job, settings=settings)
    # Without an export and without a problem it waits for scores, and is queued with the last of them.
    return job.export_as["job_id"] is not None or job.export_as["problem"] is None


def _has_export(session: Session, job: Job) -> bool:
    """Tell whether a training's queued export is active, or its model still exists."""
    export = repository.find_job(session, job_id=str((job.export_as or {}).get("job_id")))
    if export is None:
        return False
    if export.state != JobState.SUCCEEDED:
        return export.state in ACTIVE
    return find_model(session, model_id=str((export.export or {}).get("model_id"))) is not None


def _waits_for_scores(session: Session, *, job: Job) -> bool:
    """Tell whether pending scores decide the best checkpoint; the last of them checks again."""
    if not job.export_as or (job.export_as.get("best_by") is None and job.export_as.get("mode") is None):
        return False
    chosen = job.export_as.get("best_by") or (job.keep_best_by or {}).get("metric")
    best_by = (job.evaluate or {}).get("best_by")
    # A rule by a benchmark's headline has no name before the first scores.
    is_unnamed = chosen is None and best_by is not None
    if not is_unnamed and not str(chosen).startswith(list_prefixes(job) or (" ",)):
        return False
    return evaluating.count_open(session, job_id=job.id) > 0


def _choose_step(session: Session, *, job: Job, wanted: ExportAs, data_root: Path) -> tuple[int, str | None]:
    """Choose the step to export: the best by the requested metric, else the last. Also return a remark."""
    rows = [
        row
        for row in repository.list_checkpoints(session, job_id=job.id)
        if service.has_files(row, data_root=data_root)
    ]
    if not rows:
        raise CheckpointNotFound("The job left no checkpoint to export.")
    last = max(rows, key=lambda row: (row.attempt, row.step)).step
    if wanted.best_by is None and wanted.mode is None:
        return last, None
    found = checkpoints.summarise(session, job=job, metric=wanted.best_by, mode=wanted.mode)
    best = checkpoints.find_best_step(job, rows, found.metrics, metric=wanted.best_by, mode=wanted.mode)
    if best is None:
        metric = wanted.best_by or "the job's default metric"
        return last, f"No checkpoint has a value of {metric}; the last one was exported."
    return best, None


def find_free_name(session: Session, name: str) -> str:
    """Return the name, numbered if a model has it or an export is going to use it."""
    number, candidate = 1, name
    while True:
        try:
            check_name(session, name=candidate)
        except ExportNameTaken:
            number += 1
            candidate = number_name(name, number)
        else:
            return candidate


def _check_form(session: Session, *, source: Job, folder: Path, request: ExportCreate) -> None:
    if not checkpoints.holds_adapter(folder):
        if request.form == "adapter":
            raise CheckpointNotExportable(
                "The checkpoint contains full weights, not an adapter. Export it as merged."
            )
        return
    # Held until the export's row is written: from then on the row keeps the model from deletion.
    base = lock_model(session, model_id=source.model_id, is_shared=True)
    if base is None or not base.path:
        raise CheckpointNotExportable("The checkpoint is an adapter, and its base model was deleted.")


def _queue(session: Session, *, source: Job, row: Checkpoint, request: ExportCreate) -> Job:
    order = ExportOrder(
        job_id=source.id,
        job_name=source.name,
        engine=_find_engine(source.recipe),
        step=row.step,
        form=request.form,
        name=request.name,
        description=request.description,
        model_id=new_id("mdl"),
        training=describe_training(session, job=source, step=row.step),
    )
    job = Job(
        id=new_id("job"),
        name=f"Export {request.name}"[:200],
        kind=EXPORT,
        recipe=source.recipe,
        preset=source.preset,
        model_id=source.model_id,
        dataset_id=None,
        seed=source.seed,
        gpus=0,
        priority=source.priority,
        export=order.model_dump(mode="json"),
    )
    repository.add_job(session, job=job, tags=[])
    service.announce(session, job=job)
    session.flush()
    return job


def _find_engine(recipe: str) -> Engine:
    try:
        return get_recipe(recipe).engine
    except UnknownRecipe as error:
        raise CheckpointNotExportable(f"The recipe {recipe} is no longer in the catalogue.") from error
