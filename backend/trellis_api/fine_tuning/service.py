"""The life of a fine-tuning job: it waits for its files to be read, then it is a job of the platform.

create                                          writes the row; where the rows are there, begins at once
→ trellis_workers/fine_tuning/advance.py        begins those whose files have been read meanwhile
→ jobs/submit.py                                from here on it is launched, run and settled as any other
→ jobs/exports.py                               makes the model of its name when it has succeeded
"""

import secrets

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import DomainError
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.states import DatasetState
from trellis_api.endpoints.errors import ModelUnknown
from trellis_api.endpoints.openai.names import find_called
from trellis_api.fine_tuning import files, integrations, repository, translation
from trellis_api.fine_tuning.errors import (
    FineTuningJobNotFound,
    FineTuningJobOver,
    InvalidFile,
    InvalidFineTuningJob,
)
from trellis_api.fine_tuning.graders.mixture import PARAM, Rewards, build_rewards
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.requests import FineTuningCreate
from trellis_api.fine_tuning.states import find_export, find_status
from trellis_api.fine_tuning.translation import Rows
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import find_job
from trellis_api.jobs.submit import submit
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model
from trellis_api.rewards.schemas import RewardFileCreate
from trellis_api.rewards.service import add_file

_UNDERWAY = frozenset({"validating_files", "queued", "running", "paused"})


def create(session: Session, settings: Settings, request: FineTuningCreate) -> FineTuningJob:
    """Write a job that can run, as far as is known before its files are read; raises what is wrong."""
    integrations.refuse_unsupported(request, settings)
    model = _require_model(session, request.model)
    for field in ("training_file", "validation_file"):
        _require_file(session, request, field)
    _build_rewards(request, settings)
    job_id = new_id("ftjob").replace("_", "-")
    row = FineTuningJob(
        id=job_id,
        request=request.model_dump(mode="json", exclude_none=True, exclude={"hyperparameters"}),
        model_id=model.id,
        tuned_name=translation.name_model(request, model, job_id),
        seed=secrets.randbelow(2**31) if request.seed is None else request.seed,
    )
    repository.add(session, row)
    begin(session, settings, row)
    return row


def begin(session: Session, settings: Settings, row: FineTuningJob) -> bool:
    """Queue the job that carries it out, if its files have been read; raises what stands against it."""
    request = FineTuningCreate.model_validate(row.request)
    training = _find_rows(session, request, "training_file")
    validation = _find_rows(session, request, "validation_file")
    if training is None or (request.validation_file is not None and validation is None):
        return False
    model = find_model(session, model_id=row.model_id)
    if model is None:
        raise ModelUnknown(f"The model '{request.model}' was deleted.", {"param": "model"})
    wanted, chosen = translation.build_job(
        request,
        row,
        settings,
        model=model,
        training=training,
        validation=validation,
        rewards=_keep_rewards(session, row, _build_rewards(request, settings)),
    )
    try:
        job = submit(session, request=wanted, settings=settings)
    except DomainError as error:
        if error.status >= 500:
            raise
        raise _translate(error, request.method.type) from error
    row.job_id, row.hyperparameters = job.id, chosen
    repository.add(session, row)
    return True


def give_up(session: Session, row: FineTuningJob, error: DomainError) -> None:
    """Note why a job comes to nothing."""
    param = error.details.get("param") if isinstance(error.details, dict) else None
    row.error = {"code": error.code, "message": error.message[:2000], "param": param}
    row.finished_at = utc_now()
    repository.add(session, row)


def get_job(session: Session, *, job_id: str, is_locked: bool = False) -> FineTuningJob:
    """Return the fine-tuning job; ``FineTuningJobNotFound`` without one."""
    find = repository.lock_job if is_locked else repository.find_job
    row = find(session, job_id=job_id)
    if row is None:
        raise FineTuningJobNotFound(job_id)
    return row


def cancel(session: Session, *, job_id: str) -> tuple[FineTuningJob, str | None]:
    """End a job for good; the id of the job that is to be told, if one runs."""
    row, status, job = _look(session, job_id)
    if status not in _UNDERWAY:
        raise FineTuningJobOver(f"The job has {status} already; there is nothing to cancel.")
    row.cancelled_at = utc_now()
    if job is None:
        row.finished_at = row.cancelled_at
    repository.add(session, row)
    export = find_export(session, job) if job else None
    return row, _stop(session, export or job)


def pause(session: Session, *, job_id: str) -> tuple[FineTuningJob, str | None]:
    """Let a job rest at a checkpoint, without a slot; the id of the job that is to be told."""
    row, status, job = _look(session, job_id)
    if status not in {"validating_files", "queued", "running"}:
        raise FineTuningJobOver(f"The job is {status}; only one that waits or runs can be paused.")
    if job is not None and job.state == JobState.SUCCEEDED:
        raise FineTuningJobOver("The job has trained, and its model is being written; it cannot be paused.")
    row.paused_at = utc_now()
    repository.add(session, row)
    return row, _stop(session, job)


def resume(session: Session, settings: Settings, *, job_id: str) -> FineTuningJob:
    """Go on from the last checkpoint."""
    row, status, job = _look(session, job_id)
    if status != "paused":
        raise FineTuningJobOver(f"The job is {status}; only a paused one can be resumed.")
    if job is not None:
        if job.state == JobState.STOPPING:
            raise FineTuningJobOver("The job is still writing its checkpoint; resume it in a moment.")
        jobs.resume(session, job_id=job.id, data_root=settings.data_root)
    row.paused_at = None
    repository.add(session, row)
    return row


def _look(session: Session, job_id: str) -> tuple[FineTuningJob, str, Job | None]:
    row = get_job(session, job_id=job_id, is_locked=True)
    job = find_job(session, job_id=row.job_id) if row.job_id else None
    return row, find_status(row, job, find_export(session, job) if job else None), job


def _stop(session: Session, job: Job | None) -> str | None:
    if job is None or job.state not in jobs.STOPPABLE:
        return None
    jobs.request_stop(session, job_id=job.id)
    return job.id


def _require_model(session: Session, name: str) -> Model:
    model = find_called(session, name)
    if model is None:
        raise ModelUnknown(
            f"Model '{name}' not found. Use a model name or ID, or a registered model as NAME:ALIAS; to "
            "continue from a checkpoint, export it.",
            {"param": "model"},
        )
    return model


def _require_file(session: Session, request: FineTuningCreate, field: str) -> None:
    file_id = getattr(request, field)
    if file_id is not None and repository.find_file(session, file_id=file_id) is None:
        raise InvalidFile(f"{field}: there is no file '{file_id}'.", {"param": field})


def _find_rows(session: Session, request: FineTuningCreate, field: str) -> Rows | None:
    """Return the rows of a file; None if they are still being read."""
    _require_file(session, request, field)
    file_id = getattr(request, field)
    if file_id is None:
        return None
    dataset: Dataset | None = files.find_dataset(session, files.get_file(session, file_id=file_id))
    if dataset is None or dataset.state == DatasetState.FAILED:
        raise InvalidFile(f"{field}: {files.explain(session, dataset)}", {"param": field})
    if dataset.state != DatasetState.READY:
        return None
    return Rows(dataset.id, dataset.row_count)


def _build_rewards(request: FineTuningCreate, settings: Settings) -> Rewards | None:
    method = request.method.reinforcement
    return build_rewards(method.grader, settings) if method else None


def _keep_rewards(session: Session, row: FineTuningJob, rewards: Rewards | None) -> list[dict[str, object]]:
    """Return the terms of the reward mixture, with the code saved as a reward file that users can try."""
    if rewards is None:
        return []
    if rewards.code is None:
        return rewards.judges
    file = add_file(session, request=RewardFileCreate(name=f"grader of {row.id}", code=rewards.code))
    return [{"name": "python", "weight": 1.0, "options": {"file": file.id}}, *rewards.judges]


def _translate(error: DomainError, method: str) -> InvalidFineTuningJob:
    """Translate a job's error so that it names the request's own fields."""
    details = error.details if isinstance(error.details, list) and error.details else [{}]
    field = str(details[0].get("field") or "")
    param = translation.find_param(field, method) if field else None
    if param == PARAM:
        return InvalidFineTuningJob(f"{PARAM}: {error.message}", {"param": PARAM})
    return InvalidFineTuningJob(error.message, {"param": param})
