"""Decides about models: what may be registered, from where, and what may be removed.

Registering moves in three steps, so that no transaction is open while weights
are hashed: ``check`` (read), ``prepare`` (no database), ``add`` (write).
"""

import logging
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session
from trellis_contracts.attempt import locate_staging
from trellis_recipes.issues import nearest

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.core.transaction_files import remove_after_commit, remove_unless_committed
from trellis_api.core.uses import MODELS
from trellis_api.jobs.exports.training import describe_training
from trellis_api.jobs.repository import find_checkpoint, find_job
from trellis_api.jobs.service import find_folder
from trellis_api.models import repository
from trellis_api.models.catalogue import find_entry, list_entries
from trellis_api.models.errors import (
    CheckpointNotUsable,
    ModelFolderInvalid,
    ModelInUse,
    ModelNameTaken,
    ModelNotCancellable,
    ModelNotFound,
    ModelNotInCatalogue,
    ModelNotRetryable,
    ModelPathOutside,
)
from trellis_api.models.inspection import (
    ModelFacts,
    OutsideRoot,
    UnusableFolder,
    find_gguf,
    inspect_folder,
    list_files,
    resolve_folder,
)
from trellis_api.models.lineage import continue_lineage
from trellis_api.models.models import Model
from trellis_api.models.schemas import (
    CatalogueSource,
    CheckpointSource,
    HubSource,
    Lineage,
    LocalSource,
    ModelCause,
    ModelCreate,
    ModelRead,
    ModelState,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A model that passed its checks and is not registered yet."""

    model_id: str
    state: ModelState
    #: None until a model is fetched or converted.
    folder: Path | None = None
    facts: ModelFacts | None = None
    lineage: Lineage = field(default_factory=Lineage)


@dataclass(frozen=True)
class Origin:
    """What the database says about a source: the folder of a checkpoint and where it came from."""

    checkpoint_folder: Path | None = None
    lineage: Lineage = field(default_factory=Lineage)


def get_model(session: Session, *, model_id: str) -> Model:
    """Return the model; 404 if there is none."""
    model = repository.find_model(session, model_id=model_id)
    if model is None:
        raise ModelNotFound(f"Model '{model_id}' not found.")
    return model


def list_page(
    session: Session, *, text: str | None, state: ModelState | None, cursor: str | None, limit: int
) -> Page[ModelRead]:
    """List one page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_models(session, text=text, state=state, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=[ModelRead.model_validate(row) for row in shown], next_cursor=next_cursor)


def check(session: Session, settings: Settings, request: ModelCreate) -> Origin:
    """Refuse a taken name and a checkpoint that is not there, before anything is read from disk."""
    if repository.find_model_named(session, name=request.chosen_name):
        raise _name_taken(request.chosen_name)
    if isinstance(request.source, CatalogueSource):
        _require_entry(request.source.name)
    if not isinstance(request.source, CheckpointSource):
        return Origin()
    job_id, step = request.source.job_id, request.source.step
    job = find_job(session, job_id=job_id)
    checkpoint = find_checkpoint(session, job_id=job_id, step=step)
    if job is None or checkpoint is None:
        raise CheckpointNotUsable(f"Job '{job_id}' has no checkpoint at step {step}.")
    if checkpoint.pruned_at is not None:
        raise CheckpointNotUsable(f"The checkpoint at step {step} was pruned.")
    if checkpoint.hf_path is None:
        raise CheckpointNotUsable("The checkpoint has no weights in Hugging Face format; export it.")
    folder = find_folder(checkpoint, checkpoint.hf_path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotUsable("The checkpoint's files are missing or don't belong to the job.")
    training = describe_training(session, job=job, step=step)
    return Origin(checkpoint_folder=folder, lineage=continue_lineage(session, training, form="merged"))


def prepare(settings: Settings, request: ModelCreate, origin: Origin) -> Prepared:
    """Look at the weights; those of a checkpoint are linked to a folder of their own."""
    model_id = new_id("mdl")
    source = request.source
    if isinstance(source, HubSource | CatalogueSource):
        return Prepared(model_id, ModelState.PENDING)
    try:
        if isinstance(source, LocalSource):
            if find_gguf(settings.data_root, source.path):
                return Prepared(model_id, ModelState.PENDING)
            folder = resolve_folder(settings.data_root, source.path)
        else:
            folder = _keep_checkpoint(settings, model_id, origin)
        facts = inspect_folder(folder, root=settings.data_root)
    except (OutsideRoot, UnusableFolder) as error:
        shutil.rmtree(model_folder(settings, model_id), ignore_errors=True)
        if isinstance(error, OutsideRoot):
            raise ModelPathOutside(str(error)) from error
        raise ModelFolderInvalid(error.message, {"code": error.code}) from error
    return Prepared(model_id, ModelState.READY, folder, facts, origin.lineage)


def add(session: Session, settings: Settings, request: ModelCreate, prepared: Prepared) -> Model:
    """Insert the row."""
    if isinstance(request.source, CheckpointSource):
        remove_unless_committed(session, model_folder(settings, prepared.model_id))
    model = Model(
        id=prepared.model_id,
        name=request.chosen_name,
        description=request.description,
        state=prepared.state.value,
        source=request.source.model_dump(),
        lineage=prepared.lineage.model_dump(),
        warnings=[],
    )
    if prepared.folder and prepared.facts:
        apply_facts(model, settings, folder=prepared.folder, facts=prepared.facts)
    try:
        repository.add_model(session, model)
    except IntegrityError as error:
        raise _name_taken(request.chosen_name) from error
    log.info("model %s registered from %s, %s", model.id, request.source.kind, model.state)
    return model


def apply_facts(model: Model, settings: Settings, *, folder: Path, facts: ModelFacts) -> None:
    """Write what was found in the folder to the row; the model is ready then."""
    model.path = folder.relative_to(settings.data_root).as_posix()
    model.architecture = facts.architecture
    model.parameter_count = facts.parameter_count
    model.dtype = facts.dtype
    model.context_length = facts.context_length
    model.vocabulary_size = facts.vocabulary_size
    model.has_chat_template = facts.has_chat_template
    model.size_bytes = facts.size_bytes
    model.sha256 = facts.sha256
    model.sha256_kind = facts.sha256_kind
    model.warnings = list(facts.warnings)
    set_state(model, ModelState.READY)


def set_state(
    model: Model, state: ModelState, *, reason: str | None = None, cause: ModelCause | None = None
) -> None:
    """Move to a state; a reason stands beside a failure."""
    model.state = state.value
    model.state_cause = cause.value if cause else None
    model.state_reason = reason[:2000] if reason else None
    model.state_changed_at = utc_now()
    model.progress = None


def cancel_fetch(session: Session, *, model_id: str) -> Model:
    """End a fetch that waits or is under way. What it has fetched stays: a retry goes on from there.

    The worker that carries it out notices within seconds.
    """
    repository.lock_model(session, model_id=model_id)
    model = get_model(session, model_id=model_id)
    if model.state not in (ModelState.PENDING, ModelState.FETCHING):
        raise ModelNotCancellable(f"The model is {model.state}; only a download can be canceled.")
    set_state(model, ModelState.FAILED, reason="The download was canceled.", cause=ModelCause.CANCELLED)
    session.add(model)
    session.flush()
    return model


def retry_fetch(session: Session, *, model_id: str) -> Model:
    """Put a model whose fetch failed or was cancelled back into the queue."""
    repository.lock_model(session, model_id=model_id)
    model = get_model(session, model_id=model_id)
    if model.state != ModelState.FAILED:
        raise ModelNotRetryable(f"The model is {model.state}; only failed downloads can be retried.")
    set_state(model, ModelState.PENDING)
    session.add(model)
    session.flush()
    return model


def delete(session: Session, settings: Settings, *, model_id: str) -> None:
    """Delete the row and, once that is committed, the files that belong to it alone.

    A local folder or GGUF file was there before it was registered and stays.
    """
    # Locked before the jobs are looked at: a job that is being created holds it, and is seen afterwards.
    repository.lock_model(session, model_id=model_id)
    model = get_model(session, model_id=model_id)
    found = MODELS.find(session, model_id)
    # What tasks are called says nothing of them.
    jobs = [use.id if use.kind == "task" else use.label for use in found if use.kind != "alias"]
    if jobs:
        raise ModelInUse(f"The model is in use by {', '.join(jobs)[:500]}.", {"jobs": jobs})
    if aliases := [use.label for use in found if use.kind == "alias"]:
        raise ModelInUse(
            f"The model is {', '.join(aliases)}; promote another version first.", {"aliases": aliases}
        )
    repository.delete_model(session, model)
    for folder in (model_folder(settings, model_id), staging_folder(settings, model_id)):
        remove_after_commit(session, folder)


def model_folder(settings: Settings, model_id: str) -> Path:
    """Return the folder for the files of a model that was fetched, converted or kept from a checkpoint."""
    return settings.data_root / "models" / model_id


def staging_folder(settings: Settings, model_id: str) -> Path:
    """Return where an export writes until complete; next to the folder, so that one rename moves it."""
    return locate_staging(model_folder(settings, model_id))


def _keep_checkpoint(settings: Settings, model_id: str, origin: Origin) -> Path:
    """Link the checkpoint's files into the model's folder: no space is used, and they outlive the job.

    Only what an inspection sees is taken, and no link out of the checkpoint is followed.
    """
    checkpoint = origin.checkpoint_folder
    if checkpoint is None:
        raise UnusableFolder("folder_missing", "The checkpoint's files are missing.")
    folder = model_folder(settings, model_id)
    folder.mkdir(parents=True)
    for source in list_files(checkpoint, root=checkpoint):
        destination = folder / source.relative_to(checkpoint)
        destination.parent.mkdir(parents=True, exist_ok=True)
        _link_or_copy(source.resolve(), destination)
    return folder


def _link_or_copy(source: Path, destination: Path) -> None:
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, destination)


def _require_entry(name: str) -> None:
    if find_entry(name) is None:
        known = [entry.name for entry in list_entries()]
        suggestion = nearest(name, known)
        hint = f" Did you mean '{suggestion}'?" if suggestion else f" There are: {', '.join(known)}."
        raise ModelNotInCatalogue(f"The catalogue has no model '{name}'.{hint}", {"known": known})


def _name_taken(name: str) -> ModelNameTaken:
    return ModelNameTaken(f"A model named '{name}' already exists.", {"name": name})
