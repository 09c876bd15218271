"""What transfers use: the models that they take elsewhere."""

from collections.abc import Iterable

from sqlmodel import Session

from trellis_api.core.uses import Use
from trellis_api.transfers import repository


def find_of_model(session: Session, model_id: str) -> Iterable[Use]:
    """List unfinished transfers of a model."""
    return [Use("transfer", each) for each in repository.transfers_of(session, model_id=model_id)]
