"""The job of an engine that serves one endpoint, with whatever it loads beside it."""

from sqlmodel import Session

from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.endpoints.models import Endpoint
from trellis_api.jobs import repository as jobs
from trellis_api.jobs.models import SERVE, Job

#: Stands in a job's row where a training has its recipe.
RECIPE = "serve"


def add_own_job(session: Session, *, row: Endpoint, model_id: str, slots: int) -> Job:
    """Write the job of an engine that serves this endpoint alone."""
    job = Job(id=new_id("job"), name=name_job(row), kind=SERVE, recipe=RECIPE, model_id=model_id, gpus=slots)
    jobs.add_job(session, job=job, tags=[])  # before the row names it: the database checks
    row.job_id, row.engine_id = job.id, None
    forget_request(row)
    return job


def forget_request(row: Endpoint) -> None:
    """Take back what an engine was asked to load, and with it where that would answer."""
    row.load_id = row.asked_attempt = row.asked_at = None
    forget_address(row)


def forget_address(row: Endpoint) -> None:
    """Drop where an engine answered: what is known of one says nothing of the next."""
    row.ready_attempt = row.host = row.port = row.context_length = row.ready_at = row.tool_problem = None
    row.load, row.is_replaceable = None, False


def name_job(row: Endpoint) -> str:
    """Return the name of the endpoint's job."""
    return f"Endpoint {row.name}"[:200]


def slots_for(settings: Settings) -> int:
    """Return the slots that an endpoint takes: none on a CPU, where it shares the cores."""
    return 1 if settings.resolved_platform == "cuda" else 0
