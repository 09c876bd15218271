"""What the ``model`` of a request names.

A model by name or id, a checkpoint as ``job_...:200`` or the newest as ``job_...:latest``, an alias or
version of a named model as ``support-bot:production`` or ``support-bot:3``.
"""

import re

from sqlmodel import Session

from trellis_api.core.ids import ID_LENGTH
from trellis_api.endpoints.adapters import is_adapter
from trellis_api.endpoints.errors import ModelUnknown, WrongModelKind
from trellis_api.endpoints.openai.schemas import ModelCard
from trellis_api.endpoints.repository import list_states
from trellis_api.evaluations.schemas import CheckpointTarget, ModelTarget, Target
from trellis_api.evaluations.targets import is_encoder
from trellis_api.jobs.repository import find_checkpoint, list_checkpoints
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model, find_model_named, list_models
from trellis_api.models.schemas import ModelState
from trellis_api.registry.repository import find_alias, find_version, list_aliases
from trellis_api.rewards.resources import CLASSIFIER_SUFFIX

_CHECKPOINT = re.compile(rf"(job_[a-z2-7]{{{ID_LENGTH}}}):(\d{{1,15}}|latest)")
#: More models than a client's list has use for.
_MAX_LISTED = 1000
_MAX_NAME = 64


def find_target(session: Session, name: str) -> Target:
    """Return the model or checkpoint that a name means; ``ModelUnknown`` if there is none."""
    match = _CHECKPOINT.fullmatch(name)
    if match is not None:
        return _find_step(session, match.group(1), match.group(2))
    model = find_called(session, name)
    if model is None:
        raise ModelUnknown(
            f"Model '{name}' not found. Use a model name or ID, a checkpoint as "
            "job_...:STEP or job_...:latest, or a registered model as NAME:ALIAS.",
            {"param": "model"},
        )
    return ModelTarget(model=model.id)


def find_called(session: Session, name: str) -> Model | None:
    """Return the model of this id or name, or the one that is registered under it."""
    # An id goes before a name: nobody takes a model's place by calling theirs as its id.
    model = find_model(session, model_id=name) or find_model_named(session, name=name)
    return model or _find_registered(session, name)


def find_lasting_name(session: Session, name: str) -> str:
    """Return the name that what is meant now keeps: the model's own, or ``job_...:STEP``.

    Aliases and ``latest`` move. Raises ``ModelUnknown``.
    """
    target = find_target(session, name)
    if isinstance(target, CheckpointTarget):
        return f"{target.job}:{target.step}"
    model = find_model(session, model_id=target.model)
    return model.name if model else name


def find_step(name: str, *, job_id: str) -> int | None:
    """Return the step of a job's checkpoint that a name means; None for others, and for the newest."""
    match = _CHECKPOINT.fullmatch(name)
    is_named = match is not None and match.group(1) == job_id and match.group(2) != "latest"
    return int(match.group(2)) if match is not None and is_named else None


def is_latest(name: str) -> bool:
    """Tell whether a name means the newest checkpoint of a job, whichever that is."""
    match = _CHECKPOINT.fullmatch(name)
    return match is not None and match.group(2) == "latest"


def find_job_id(name: str) -> str | None:
    """Return the job whose checkpoint a name means; None for other names."""
    match = _CHECKPOINT.fullmatch(name)
    return match.group(1) if match is not None else None


def _find_step(session: Session, job_id: str, word: str) -> CheckpointTarget:
    """Return a checkpoint by its step, or the newest that has not been pruned."""
    if word == "latest":
        there = [row for row in list_checkpoints(session, job_id=job_id) if row.pruned_at is None]
        if not there:
            raise ModelUnknown(f"Job '{job_id}' has no checkpoint yet.", {"param": "model"})
        return CheckpointTarget(job=job_id, step=max(row.step for row in there))
    if find_checkpoint(session, job_id=job_id, step=int(word)) is None:
        raise ModelUnknown(f"Job '{job_id}' has no checkpoint at step {int(word)}.", {"param": "model"})
    return CheckpointTarget(job=job_id, step=int(word))


def _find_registered(session: Session, name: str) -> Model | None:
    """Return the model of a registry entry's alias or version number."""
    named, _, word = name.rpartition(":")
    if not named or len(named) > _MAX_NAME or len(word) > _MAX_NAME:
        return None
    alias = find_alias(session, name=named, alias=word)
    number = alias.version if alias else int(word) if word.isascii() and word.isdigit() else None
    # Larger numbers than a column holds are no versions.
    version = None
    if number is not None and number < 2**31:
        version = find_version(session, name=named, number=number)
    return find_model(session, model_id=version.model_id) if version else None


def require_kind(session: Session, target: Target, name: str, *, is_embedding: bool) -> None:
    """Raise ``WrongModelKind`` if an encoder is asked to generate, or a generative model to embed."""
    model = find_model(session, model_id=target.model) if isinstance(target, ModelTarget) else None
    encodes = model is not None and is_encoder(model.architecture)
    if encodes and not is_embedding:
        raise WrongModelKind(
            f"Model '{name}' is an encoder and can't generate text. Use POST /v1/embeddings.",
            {"param": "model"},
        )
    if is_embedding and not encodes:
        raise WrongModelKind(
            f"Model '{name}' is not an encoder. Embeddings need one, like all-MiniLM-L6-v2.",
            {"param": "model"},
        )


def list_cards(session: Session) -> list[ModelCard]:
    """List every generative model that is ready, newest first, then the checkpoints that were served."""
    models = list_models(session, text=None, state=ModelState.READY, after=None, limit=_MAX_LISTED)
    ids = {model.id for model in models}
    cards = [
        ModelCard(id=model.name, created=int(model.created_at.timestamp()))
        for model in models
        if (not is_adapter(model) or model.parent_model_id in ids)
        and not (model.architecture or "").endswith(CLASSIFIER_SUFFIX)
    ]
    cards += [
        ModelCard(id=f"{row.name}:{row.alias}", created=int(row.moved_at.timestamp()))
        for row in list_aliases(session)
    ]
    served = [row for row, _ in list_states(session) if row.target_job_id is not None]
    return cards + [ModelCard(id=row.name, created=int(row.created_at.timestamp())) for row in served]
