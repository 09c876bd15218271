"""What sweeps use: what the request names that each of their next runs is made from."""

from collections.abc import Iterator

from sqlmodel import Session

from trellis_api.core.uses import Use
from trellis_api.jobs.named import Named, UsersByRequest
from trellis_api.sweeps import repository
from trellis_api.sweeps.named import list_named


def list_active(session: Session) -> Iterator[tuple[Use, Named]]:
    """List each sweep that may begin another run with what its request names."""
    for sweep_id, name, document in repository.list_active_documents(session):
        yield Use("sweep", sweep_id, name), list_named(document)


USERS = UsersByRequest(list_active)
