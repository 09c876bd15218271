"""Names the fields of a request that the job row has as they are: for submission, clone and presentation."""

from typing import Any

from trellis_api.jobs.models import Job
from trellis_api.jobs.schemas import JobCreate

#: Column of the job's row by field of ``JobCreate``, of what the job reads.
INPUTS = {"model": "model_id", "dataset": "dataset_id", "validation_dataset": "validation_dataset_id"}
#: The same of all others. ``JobRead`` has these under the field's name.
PLAIN = {
    "columns": "data_columns",
    **{
        name: name
        for name in (
            "name",
            "recipe",
            "preset",
            "dataset_version",
            "dataset_split",
            "validation_version",
            "validation_split",
            "data_format",
            "validation_columns",
            "validation_data_format",
            "params",
            "overrides",
            "seed",
            "priority",
        )
    },
}


def as_columns(request: JobCreate) -> dict[str, Any]:
    """Return the columns of the row that a request gives as they are."""
    return {column: getattr(request, field) for field, column in (INPUTS | PLAIN).items()}


def read_inputs(job: Job) -> dict[str, Any]:
    """Return what the job reads, as fields of a request."""
    return {field: getattr(job, column) for field, column in INPUTS.items()}


def read_plain(job: Job) -> dict[str, Any]:
    """Return the other fields of the request."""
    return {field: getattr(job, column) for field, column in PLAIN.items()}
