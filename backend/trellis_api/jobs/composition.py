"""Says to the recipe composer what a job needs; preview, submission and launch all ask through here.

A submission composes and stores what it got (``configuration.py``); a launch only adds its own part to it.
"""

from dataclasses import dataclass

from trellis_contracts.attempt import PREPARED_FOLDER, TRAIN_FILE, VALIDATION_FILE
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.request import ComposeRequest, LaunchPart

from trellis_api.core.ray_cluster import find_nodes
from trellis_api.core.settings import Settings
from trellis_api.datasets.view import DatasetView
from trellis_api.jobs.fit.data import has_uncheckable_answers
from trellis_api.jobs.fit.schemas import DataFit
from trellis_api.jobs.forecast.memory import find_architecture
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model


@dataclass(frozen=True)
class JobInputs:
    """What a job is made from."""

    model: Model
    dataset: DatasetView
    validation_dataset: DatasetView | None = None


def build_compose_request(
    settings: Settings, *, job: Job, job_inputs: JobInputs, data: DataFit | None = None
) -> ComposeRequest:
    """Build the composer's request for a job; ``data``: how its dataset is read, for warnings.

    Its data files are named where the attempt will prepare them, so that the preview
    shows what will run.
    """
    return ComposeRequest(
        **dict(build_launch_part(settings, job=job, job_inputs=job_inputs)),
        recipe=job.recipe,
        preset=job.preset,
        params=job.params,
        overrides=job.overrides,
        platform=settings.resolved_platform,
        gpus=job.gpus,
        device_memory_bytes=job.device_memory_bytes,
        has_flash_attention=settings.has_flash_attention,
        architecture=_find_architecture(settings, job_inputs.model),
        parameter_count=job_inputs.model.parameter_count,
        seed=job.seed,
        row_count=job_inputs.dataset.row_count,
        has_uncheckable_answers=data is not None and has_uncheckable_answers(data),
    )


def build_launch_part(settings: Settings, *, job: Job, job_inputs: JobInputs) -> LaunchPart:
    """Return what only the launch of the job's attempt knows, as it is here and now."""
    nodes = find_nodes(settings)
    prepared = settings.attempt_dir(job.id, job.attempt) / PREPARED_FOLDER
    has_validation = job_inputs.validation_dataset is not None
    return LaunchPart(
        node_gpus=None if nodes is None else [node.gpus for node in nodes],
        model_path=str(settings.data_root / (job_inputs.model.path or "")),
        train_path=str(prepared / TRAIN_FILE),
        validation_path=str(prepared / VALIDATION_FILE) if has_validation else None,
        checkpoint_dir=str(settings.checkpoint_dir(job.id)),
        resume_from=job.resume_from,
    )


def _find_architecture(settings: Settings, model: Model) -> Architecture | None:
    """Return the model's architecture; None if its configuration lacks it, as the memory estimate says."""
    try:
        return find_architecture(model, settings.data_root)
    except (OSError, ValueError, RecursionError):
        return None
