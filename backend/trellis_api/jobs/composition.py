"""Says to the recipe composer what a job needs; preview, submission and launch all ask through here."""

from dataclasses import dataclass

from trellis_contracts.attempt import PREPARED_FOLDER, TRAIN_FILE, VALIDATION_FILE
from trellis_recipes.compose import ComposeRequest
from trellis_recipes.memory.architecture import find_base_bits, find_largest_weight

from trellis_api.core.settings import Settings
from trellis_api.datasets.view import DatasetView
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_api.monitoring.machine import find_gpu_memory


@dataclass(frozen=True)
class Ingredients:
    """What a job is made from."""

    model: Model
    dataset: DatasetView
    validation_dataset: DatasetView | None = None


def build_compose_request(settings: Settings, *, job: Job, ingredients: Ingredients) -> ComposeRequest:
    """The composer's request for a job.

    Its data files are named where the attempt will prepare them, so that the preview
    shows what will run.
    """
    prepared = settings.attempt_dir(job.id, job.attempt) / PREPARED_FOLDER
    has_validation = ingredients.validation_dataset is not None
    model_folder = settings.data_root / (ingredients.model.path or "")
    platform = settings.resolved_platform
    return ComposeRequest(
        recipe=job.recipe,
        preset=job.preset,
        params=job.params,
        overrides=job.overrides,
        platform=platform,
        gpus=job.gpus,
        gpu_memory_bytes=find_gpu_memory() if platform != "cpu" and job.preset is None else None,
        model_path=str(model_folder),
        base_bits=find_base_bits(model_folder),
        has_flash_attention=settings.has_flash_attention,
        largest_weight=find_largest_weight(model_folder),
        train_path=str(prepared / TRAIN_FILE),
        validation_path=str(prepared / VALIDATION_FILE) if has_validation else None,
        checkpoint_dir=str(settings.checkpoint_dir(job.id)),
        seed=job.seed,
        row_count=ingredients.dataset.row_count,
        resume_from=job.resume_from,
    )
