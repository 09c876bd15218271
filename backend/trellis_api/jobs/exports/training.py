"""What a checkpoint was made from: the training, as the model that it becomes keeps it."""

from sqlmodel import Session

from trellis_api.datasets.repository import find_dataset
from trellis_api.datasets.version_repository import find_version
from trellis_api.environments.repository import find_environment
from trellis_api.environments.uses import PARAMETER as ENVIRONMENT_PARAMETER
from trellis_api.jobs.models import Job
from trellis_api.models.repository import find_model
from trellis_api.models.schemas import Training


def describe_training(session: Session, *, job: Job, step: int) -> Training:
    """Describe what a checkpoint of a job was made from, by ID and by name."""
    model = find_model(session, model_id=job.model_id)
    dataset = find_dataset(session, dataset_id=job.dataset_id) if job.dataset_id else None
    version = None
    if dataset is not None and job.dataset_version is not None:
        version = find_version(session, dataset_id=dataset.id, version_id=job.dataset_version)
    named = job.params.get(ENVIRONMENT_PARAMETER)
    environment_id = named if isinstance(named, str) else None
    environment = find_environment(session, environment_id=environment_id) if environment_id else None
    return Training(
        job_id=job.id,
        job_name=job.name,
        recipe=job.recipe,
        step=step,
        model_id=job.model_id,
        model_name=model.name if model else None,
        dataset_id=job.dataset_id,
        dataset_name=dataset.name if dataset else None,
        dataset_version=job.dataset_version,
        dataset_split=job.dataset_split,
        dataset_sha256=version.tree if version else None,
        environment_id=environment_id,
        environment_name=environment.name if environment else None,
        environment_sha256=environment.sha256 if environment else None,
    )
