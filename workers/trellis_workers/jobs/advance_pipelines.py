"""Takes pipelines of jobs further: beat calls it every other second, and requests nudge it.

Each pipeline in a transaction of its own, which looks again under the pipeline's lock. Nothing is kept
outside the database, so a worker may die anywhere: the next look goes on from the rows.
"""

import logging

from sqlalchemy.exc import OperationalError
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.advance import advance, give_up
from trellis_api.jobs.tried_ahead import try_templates_of

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)
_UNEXPECTED = "The stage could not be started or finished; see the workers' log for the reason."


def advance_pipelines() -> bool:
    """Advance every active pipeline by one step; returns whether there is something to launch."""
    with read() as session:
        unsettled = repository.list_unsettled(session)
    has_begun = False
    for pipeline_id in unsettled:
        try:
            _try_templates(pipeline_id)
            with write() as session:
                has_begun |= advance(session, get_settings(), pipeline_id=pipeline_id)
        except OperationalError as error:
            logger.warning("pipeline %s: the database is unreachable, retrying: %s", pipeline_id, error)
            return has_begun
        except Exception:  # the edge of the process: one pipeline must not hold up the others
            logger.exception("pipeline %s could not be advanced", pipeline_id)
            with write() as session:
                give_up(session, pipeline_id=pipeline_id, problem=_UNEXPECTED)
    return has_begun


def _try_templates(pipeline_id: str) -> None:
    """Try the chat templates of what the stages start from: given models, and those of finished stages."""
    with read() as session:
        stages = repository.list_stages(session, pipeline_id=pipeline_id)
    named = [[stage.document, stage.model_id] for stage in stages]
    try_templates_of(read, get_settings(), named)
