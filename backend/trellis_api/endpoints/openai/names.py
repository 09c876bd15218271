"""What the ``model`` of a request names.

A model by name or id, a checkpoint as ``job_...:200`` or the newest as ``job_...:latest``, an alias or
version of a named model as ``support-bot:production`` or ``support-bot:3``.
"""

import re
from datetime import datetime

from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import ID_LENGTH
from trellis_api.endpoints.adapters import is_adapter
from trellis_api.endpoints.errors import ModelUnknown, WrongModelKind
from trellis_api.endpoints.openai.schemas import ModelCard, ModelList
from trellis_api.endpoints.repository import list_served_checkpoints
from trellis_api.evaluations.schemas import CheckpointTarget, ModelTarget, Target
from trellis_api.evaluations.targets import is_encoder
from trellis_api.jobs.repository import find_checkpoint, list_checkpoints
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model, find_model_named, list_models, list_ready
from trellis_api.models.schemas import ModelState
from trellis_api.registry.repository import find_alias, find_version, list_aliases
from trellis_api.rewards.resources import CLASSIFIER_SUFFIX

_CHECKPOINT = re.compile(rf"(job_[a-z2-7]{{{ID_LENGTH}}}):(\d{{1,15}}|latest)")
#: Models that are read at a time, of which some may be no generative ones.
_BATCH = 500
#: Checkpoints that are listed; requests may name any other one, too.
_MAX_SERVED = 200
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
    return _find_own(session, name) or _find_registered(session, name)


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


def list_cards(session: Session, *, after: str | None, limit: int) -> ModelList:
    """List generative models that are ready, newest first; then aliases, and checkpoints that were served.

    Aliases and checkpoints are few, and come with the last of the models, which alone are paged: nothing
    follows one. Raises ``ModelUnknown`` if ``after`` is no name.
    """
    last = None if after is None else _find_own(session, after)
    if after is not None and last is None:
        _require_name(session, after)
        return ModelList(data=[], has_more=False, last_id=None)
    models = _list_generative(session, last=last, count=limit + 1)
    cards = [_describe(model) for model in models[:limit]]
    if len(models) > limit:
        return ModelList(data=cards, has_more=True, last_id=cards[-1].id)
    cards += [
        ModelCard(id=f"{row.name}:{row.alias}", created=_seconds(row.moved_at))
        for row in list_aliases(session)
    ]
    cards += [
        ModelCard(id=name, created=_seconds(created_at))
        for name, created_at in list_served_checkpoints(session, limit=_MAX_SERVED)
    ]
    return ModelList(data=cards, has_more=False, last_id=cards[-1].id if cards else None)


def read_card(session: Session, name: str) -> ModelCard:
    """Describe what a request may name. Raises ``ModelUnknown``."""
    target = find_target(session, name)
    if isinstance(target, CheckpointTarget):
        checkpoint = find_checkpoint(session, job_id=target.job, step=target.step)
        created_at = checkpoint.created_at if checkpoint else utc_now()
    else:
        model = find_model(session, model_id=target.model)
        is_own_name = model is not None and name in (model.id, model.name)
        named, _, word = name.rpartition(":")
        alias = None if is_own_name else find_alias(session, name=named, alias=word)
        created_at = alias.moved_at if alias else model.created_at if model else utc_now()
    return ModelCard(id=name, created=_seconds(created_at))


def _require_name(session: Session, name: str) -> None:
    """Raise ``ModelUnknown`` unless a request may name this."""
    try:
        find_target(session, name)
    except ModelUnknown as error:
        raise ModelUnknown(f"Model '{name}' not found.", {"param": "after"}) from error


def _find_own(session: Session, name: str) -> Model | None:
    """Return the model of this id or name, no alias."""
    # An id goes before a name: nobody takes a model's place by calling theirs as its id.
    return find_model(session, model_id=name) or find_model_named(session, name=name)


def _list_generative(session: Session, *, last: Model | None, count: int) -> list[Model]:
    """List models after ``last`` that write texts, and adapters whose base model is ready."""
    found: list[Model] = []
    while len(found) < count:
        place = None if last is None else (last.created_at, last.id)
        models = list_models(session, text=None, state=ModelState.READY, after=place, limit=_BATCH)
        bases = {model.parent_model_id for model in models if is_adapter(model)}
        ready = list_ready(session, model_ids=[each for each in bases if each is not None])
        found += [
            model
            for model in models
            if (not is_adapter(model) or model.parent_model_id in ready)
            and not (model.architecture or "").endswith(CLASSIFIER_SUFFIX)
        ]
        if len(models) < _BATCH:
            break
        last = models[-1]
    return found[:count]


def _describe(model: Model) -> ModelCard:
    return ModelCard(id=model.name, created=_seconds(model.created_at))


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
