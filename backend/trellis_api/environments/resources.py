"""The environment that a job names: whether it is there, ready, and one that its agent can work in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlmodel import Session
from trellis_contracts.environments import EnvironmentState
from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.environments import repository
from trellis_api.environments.errors import EnvironmentNotReady, UnknownEnvironment, UnsuitableEnvironment
from trellis_api.environments.folder import content_folder
from trellis_api.environments.models import Environment
from trellis_api.environments.uses import PARAMETER

FIELD = f"params.{PARAMETER}"
#: By agent, the kinds of environments that it can work in; all others can in any.
KINDS = {"linksearch": ("linksearch", "linksearch_database")}


def keep_environment(session: Session, params: Mapping[str, Any]) -> None:
    """Hold the environment that a job's parameters name, until the transaction ends."""
    if isinstance(name := params.get(PARAMETER), str):
        repository.lock_environment(session, environment_id=name, is_shared=True)


def require_environment(session: Session, *, recipe: str, params: Mapping[str, Any]) -> Environment | None:
    """Return the environment that a job names, None if it names none; raises if it cannot be used."""
    name = params.get(PARAMETER)
    if not isinstance(name, str):
        return None  # the check of the parameters says what is wrong with it
    environment = repository.find_environment(session, environment_id=name)
    if environment is None:
        raise _refuse(UnknownEnvironment, f"Environment '{name[:80]}' not found; it may have been deleted.")
    if environment.state != EnvironmentState.READY:
        reason = f": {environment.reason}" if environment.reason else "."
        raise _refuse(EnvironmentNotReady, f"'{environment.name}' is {environment.state}{reason}")
    wanted = KINDS.get(_agent_of(recipe) or "")
    if wanted is not None and environment.kind not in wanted:
        kinds = " or ".join(wanted)
        message = f"'{environment.name}' is a {environment.kind} environment; {recipe} needs one {kinds}."
        raise _refuse(UnsuitableEnvironment, message)
    return environment


def find_environment_problems(
    session: Session, *, recipe: str, params: Mapping[str, Any]
) -> list[tuple[DomainError, str]]:
    """Find why a job can't work in the environment that it names, with the field; empty if it can."""
    try:
        require_environment(session, recipe=recipe, params=params)
    except DomainError as error:
        return [(error, FIELD)]
    return []


def locate_environment(
    session: Session, settings: Settings, *, recipe: str, params: Mapping[str, Any]
) -> Path | None:
    """Return the folder that a job's agent works in; raises if it was deleted after the submission."""
    environment = require_environment(session, recipe=recipe, params=params)
    return None if environment is None else content_folder(settings, environment.id)


def _agent_of(recipe: str) -> str | None:
    try:
        return get_recipe(recipe).agent
    except UnknownRecipe:
        return None


def _refuse(error: type[DomainError], message: str) -> DomainError:
    return error(message, [{"code": error.code, "field": FIELD, "message": message}])
