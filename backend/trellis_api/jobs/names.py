"""Names of jobs, and requests of trainings with names in place of IDs."""

from typing import Any

from sqlmodel import Session

from trellis_api.jobs.models import Job
from trellis_api.jobs.schemas import JobCreate
from trellis_api.names.resolve import DATASETS, MODELS, Kind, find_id, with_parameter_ids
from trellis_api.rewards.names import with_order_ids
from trellis_api.rewards.resources import with_resource_ids

#: As filters and paths name them.
JOBS = Kind(Job, "job", "jobs")


def with_ids(session: Session, request: JobCreate, *, field: str = "") -> JobCreate:
    """Return the request with the IDs of what it calls by name; raises ``AmbiguousName`` if several are.

    ``field`` begins the names of fields in errors: where the request stands in a larger one.
    """
    found: dict[str, Any] = {
        "model": find_id(session, MODELS, request.model, field=f"{field}model"),
        "dataset": find_id(session, DATASETS, request.dataset, field=f"{field}dataset"),
        "params": with_names_of_parameters(session, request.params, field=f"{field}params"),
    }
    if (called := request.validation_dataset) is not None:
        found["validation_dataset"] = find_id(session, DATASETS, called, field=f"{field}validation_dataset")
    if (order := request.evaluate) is not None:
        benchmarks = with_order_ids(session, order.benchmarks, field=f"{field}evaluate.benchmarks")
        found["evaluate"] = order.model_copy(update={"benchmarks": benchmarks})
    changed = {name: value for name, value in found.items() if value != getattr(request, name)}
    return request.model_copy(update=changed)


def with_names_of_parameters(session: Session, params: dict[str, Any], *, field: str) -> dict[str, Any]:
    """Return parameters with the IDs of environment, agent code, and what rewards use."""
    found = with_parameter_ids(session, params, field=field)
    if "rewards" in found:
        found["rewards"] = with_resource_ids(session, found["rewards"], field=f"{field}.rewards")
    return found
