"""What named models use: the models that their aliases stand on."""

from collections.abc import Iterable

from sqlmodel import Session

from trellis_api.core.uses import Use
from trellis_api.registry import repository


def find_of_model(session: Session, model_id: str) -> Iterable[Use]:
    """List aliases that stand on a version which is this model."""
    return [Use("alias", alias) for alias in repository.names_using(session, model_id=model_id)]
