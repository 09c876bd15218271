"""Models that a workflow may call beside the one that is trained: named by a job, asked at ``/v1``."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session
from trellis_contracts.endpoints import OPENAI_PREFIX, ChatEndpoint
from trellis_recipes.workflows.source import AUXILIARY

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.endpoints.openai.names import find_called, find_target
from trellis_api.workflows.errors import UnknownAuxiliaryModel

FIELD = f"params.{AUXILIARY}"
#: Before the name of an endpoint that the platform's owner has set up for judging.
JUDGE_PREFIX = "judge:"
MAX_MODELS = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
#: An endpoint that is not loaded is loaded by the first request.
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class AuxiliaryEndpoint:
    """Where a model is asked."""

    endpoint: ChatEndpoint
    #: One of the platform's own models, asked with the run's token.
    is_ours: bool


def parse_auxiliary_models(given: object) -> dict[str, str]:
    """Parse ``critic=smollm2, grader=judge:large`` into names and models; ``UnknownAuxiliaryModel``."""
    found: dict[str, str] = {}
    if not isinstance(given, str):
        return found
    for part in filter(None, (each.strip() for each in given.split(","))):
        name, separator, model = (each.strip() for each in part.partition("="))
        if not separator or not _NAME.fullmatch(name) or not model or name in found:
            raise _refuse(
                f"'{part[:100]}' is not NAME=MODEL. Give the models as NAME=MODEL, NAME=MODEL: names are"
                " letters, digits, _ and -, each once."
            )
        found[name] = model
    if len(found) > MAX_MODELS:
        raise _refuse(f"A workflow can have at most {MAX_MODELS} auxiliary models, not {len(found)}.")
    return found


def find_auxiliary_models(
    session: Session, settings: Settings, *, params: Mapping[str, Any]
) -> dict[str, AuxiliaryEndpoint]:
    """Find the endpoints of a job's auxiliary models; ``UnknownAuxiliaryModel`` if one doesn't exist."""
    named = parse_auxiliary_models(params.get(AUXILIARY))
    return {name: _find(session, settings, model) for name, model in named.items()}


def list_our_models(given: object) -> set[str]:
    """List the platform's own models that a text names; none where the text is refused at submission."""
    try:
        named = parse_auxiliary_models(given).values()
    except UnknownAuxiliaryModel:
        return set()
    return {model for model in named if not model.startswith(JUDGE_PREFIX)}


def find_model_ids(session: Session, names: Collection[str]) -> set[str]:
    """Return the ids of the registered models that these names mean in requests."""
    return {model.id for name in names if (model := find_called(session, name)) is not None}


def find_auxiliary_problems(
    session: Session, settings: Settings, *, params: Mapping[str, Any], gpus: int
) -> list[tuple[DomainError, str]]:
    """Find why a job can't call the models that it names, with the field; empty if it can."""
    try:
        found = find_auxiliary_models(session, settings, params=params)
        served = len({each.endpoint.model for each in found.values() if each.is_ours})
        if settings.resolved_platform == "cuda" and gpus + served > settings.total_slots:
            raise _refuse(
                f"The job takes {gpus} of {settings.total_slots} slots, and each model of the platform that"
                " it calls takes one more: take fewer GPUs, or an endpoint elsewhere (judge:NAME)."
            )
        if settings.resolved_platform == "cpu" and served > settings.max_endpoints:
            raise _refuse(
                f"{settings.max_endpoints} endpoints run at once here (TRELLIS_MAX_ENDPOINTS), and the job"
                f" calls {served} models of the platform."
            )
    except UnknownAuxiliaryModel as error:
        return [(error, FIELD)]
    return []


def _find(session: Session, settings: Settings, model: str) -> AuxiliaryEndpoint:
    if model.startswith(JUDGE_PREFIX):
        judge = settings.judges.get(model.removeprefix(JUDGE_PREFIX))
        if judge is None:
            known = ", ".join(settings.judges) or "none"
            raise _refuse(f"There is no '{model[:80]}'; TRELLIS_JUDGES has {known}.")
        return AuxiliaryEndpoint(judge, is_ours=False)
    try:
        find_target(session, model)
    except DomainError as error:
        raise _refuse(error.message) from None
    base_url = f"{settings.base_url}{OPENAI_PREFIX}"
    return AuxiliaryEndpoint(ChatEndpoint(base_url=base_url, model=model, timeout_s=_TIMEOUT_S), is_ours=True)


def _refuse(message: str) -> UnknownAuxiliaryModel:
    code = UnknownAuxiliaryModel.code
    return UnknownAuxiliaryModel(message, [{"code": code, "field": FIELD, "message": message}])
