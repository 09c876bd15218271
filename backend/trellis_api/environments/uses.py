"""What works in an environment, so that it stays until that is over."""

from collections.abc import Collection

from sqlmodel import Session

from trellis_api.core.uses import ENVIRONMENTS, list_labels

#: The parameter that names an environment.
PARAMETER = "environment"


def list_uses(session: Session, *, environment_id: str) -> list[str]:
    """List the names of unfinished jobs that use it, and of active pipelines and sweeps."""
    return list_labels(ENVIRONMENTS.find(session, environment_id))


def map_uses(session: Session, *, environment_ids: Collection[str]) -> dict[str, list[str]]:
    """List the same of several environments."""
    found = ENVIRONMENTS.map(session, environment_ids)
    return {environment_id: list_labels(users) for environment_id, users in found.items()}
