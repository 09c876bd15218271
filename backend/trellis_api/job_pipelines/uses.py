"""What pipelines are going to use: what the stages that wait or run name, and the models made for them."""

from collections.abc import Iterator

from sqlmodel import Session

from trellis_api.core.uses import Use
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.named import list_named
from trellis_api.jobs.named import Named, UsersByRequest


def list_active(session: Session) -> Iterator[tuple[Use, Named]]:
    """List each active pipeline with what its unfinished stages name."""
    stages = repository.list_stages_of_active(session)
    for pipeline_id, (name, found) in stages.items():
        yield Use("pipeline", pipeline_id, name), list_named(found)


USERS = UsersByRequest(list_active)
