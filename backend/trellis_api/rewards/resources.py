"""Finds what the names in a mixture's options stand for: uploaded files, registered models, judges."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.rewards import RewardTerm
from trellis_contracts.spec import ModelSource
from trellis_recipes.rewards import reward_kinds

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model, lock_model
from trellis_api.models.tried_templates import require_tried_templates
from trellis_api.names.resolve import MODELS, Kind, find_id
from trellis_api.rewards.availability import find_obstacle
from trellis_api.rewards.errors import (
    RewardUnavailable,
    UnknownJudge,
    UnknownRewardFile,
    UnknownRewardModel,
)
from trellis_api.rewards.files import FILES
from trellis_api.rewards.models import RewardFile

#: How transformers names models that give one number for a text.
CLASSIFIER_SUFFIX = "ForSequenceClassification"
REWARD_FILES = Kind(RewardFile, "rwf", "reward files")
#: What options can name, by their source.
NAMED = {"models": MODELS, "reward-files": REWARD_FILES}


@dataclass(frozen=True)
class FoundResources:
    """What a mixture needs besides itself, by the names that its options use."""

    files: dict[str, RewardFile] = field(default_factory=dict)
    models: dict[str, ModelSource] = field(default_factory=dict)
    judges: dict[str, JudgeEndpoint] = field(default_factory=dict)


def as_terms(rewards: object) -> list[RewardTerm]:
    """Return the terms of a parameter ``rewards``, even an unchecked one; invalid terms are left out."""
    entries = rewards if isinstance(rewards, list) else []
    terms = []
    for entry in entries:
        try:
            terms.append(RewardTerm.model_validate(entry))
        except ValidationError:
            continue  # the check of the mixture says what is wrong with it
    return terms


def names_used(terms: Iterable[RewardTerm]) -> Iterator[tuple[str, str, str]]:
    """Yield (source, id, option path) of each option with a resource: ``("models", "mdl_...", ...)``."""
    for index, term in enumerate(terms):
        kind = reward_kinds().get(term.name)
        for option in kind.options if kind else ():
            value = term.options.get(option.name)
            if option.source is not None and isinstance(value, str):
                yield option.source, value, f"{index}.options.{option.name}"


def with_resource_ids(session: Session, rewards: Any, *, field: str) -> Any:
    """Return a parameter ``rewards`` with the IDs of the models and files that its options name.

    What is no list of terms stays as it is: the check of the mixture says what is wrong with it.
    """
    if not isinstance(rewards, list):
        return rewards
    made = []
    for index, entry in enumerate(rewards):
        kind = reward_kinds().get(str(entry.get("name"))) if isinstance(entry, dict) else None
        options = entry.get("options") if kind else None
        if kind is None or not isinstance(options, dict):
            made.append(entry)
            continue
        found = {
            option.name: find_id(
                session, NAMED[option.source], value, field=f"{field}.{index}.options.{option.name}"
            )
            for option in kind.options
            if option.source in NAMED and isinstance(value := options.get(option.name), str)
        }
        made.append({**entry, "options": {**options, **found}})
    return made


def find_resources(
    session: Session, settings: Settings, *, terms: Iterable[RewardTerm], field_name: str = "params.rewards"
) -> FoundResources:
    """Find everything that the terms name; raises if something doesn't exist (any more)."""
    found = FoundResources()
    for source, name, place in names_used(terms):
        where = f"{field_name}.{place}"
        if source == "reward-files":
            found.files[name] = _find_file(session, name, where)
        elif source == "models":
            found.models[name] = _find_model(session, settings, name, where)
        else:
            found.judges[name] = _find_judge(settings, name, where)
    return found


def find_problems(
    session: Session, settings: Settings, *, rewards: object, field_name: str = "params.rewards"
) -> list[tuple[DomainError, str]]:
    """Find why a job with these rewards can't run on this platform, each with its field; empty if it can."""
    terms = as_terms(rewards)
    problems: list[tuple[DomainError, str]] = []
    for index, term in enumerate(terms):
        obstacle = find_obstacle(session, term.name, settings)
        if obstacle:
            where = f"{field_name}.{index}.name"
            details = _details(RewardUnavailable, where, obstacle.en)
            problems.append((RewardUnavailable(obstacle.en, details), where))
    try:
        find_resources(session, settings, terms=terms, field_name=field_name)
    except DomainError as error:
        problems.append((error, error.details[0]["field"]))
    return problems


def keep_resources(session: Session, *, terms: Iterable[RewardTerm]) -> None:
    """Hold files and models until the transaction ends: nothing of them is deleted in between."""
    for source, name, _ in names_used(terms):
        if source == "reward-files":
            FILES.lock(session, name, is_shared=True)
        elif source == "models":
            lock_model(session, model_id=name, is_shared=True)


def _find_file(session: Session, file_id: str, field_name: str) -> RewardFile:
    file = FILES.find(session, file_id)
    if file is None:
        message = f"Reward file '{file_id}' not found; it may have been deleted."
        raise UnknownRewardFile(message, _details(UnknownRewardFile, field_name, message))
    return file


def _find_model(session: Session, settings: Settings, model_id: str, field_name: str) -> ModelSource:
    model = find_model(session, model_id=model_id)
    problem = _find_model_problem(model, model_id)
    if problem or model is None:
        raise UnknownRewardModel(problem or "", _details(UnknownRewardModel, field_name, problem or ""))
    folder = settings.data_root / (model.path or "")
    require_tried_templates(folder, field=field_name)
    return ModelSource(
        model_id=model.id,
        path=str(folder),
        sha256=model.sha256,
        revision=model.revision,
    )


def _find_model_problem(model: Model | None, model_id: str) -> str | None:
    if model is None:
        return f"Model '{model_id}' not found; it may have been deleted."
    if not model.path:
        return f"The weights of {model.name} aren't downloaded yet ({model.state})."
    architecture = model.architecture or "model of unknown architecture"
    if not architecture.endswith(CLASSIFIER_SUFFIX):
        return f"{model.name} is a {architecture}; a reward model is a ...{CLASSIFIER_SUFFIX}."
    return None


def _find_judge(settings: Settings, name: str, field_name: str) -> JudgeEndpoint:
    if name not in settings.judges:
        known = ", ".join(sorted(settings.judges)) or "none configured (TRELLIS_JUDGES)"
        message = f"Unknown judge '{name}'; available: {known}."
        raise UnknownJudge(message, _details(UnknownJudge, field_name, message))
    return settings.judges[name]


def _details(error: type[DomainError], field_name: str, message: str) -> list[dict[str, Any]]:
    return [{"code": error.code, "field": field_name, "message": message}]
