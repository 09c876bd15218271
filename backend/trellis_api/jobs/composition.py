"""Says to the recipe composer what a job needs; preview, submission and launch all ask through here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_recipes.compose import ComposeRequest

from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model


@dataclass(frozen=True)
class Ingredients:
    """What a job is made from."""

    model: Model
    dataset: Dataset
    validation_dataset: Dataset | None = None


def build_compose_request(
    settings: Settings,
    *,
    job: Job,
    ingredients: Ingredients,
    train_path: Path | None = None,
    validation_path: Path | None = None,
) -> ComposeRequest:
    """The composer's request for a job.

    The launch gives the paths of its prepared data; before that they are the places where
    the first attempt will put them, so that the preview shows what will run.
    """
    prepared = settings.attempt_dir(job.id, job.attempt) / "prepared"
    train = train_path or prepared / "train.parquet"
    validation = validation_path
    if validation is None and ingredients.validation_dataset is not None:
        validation = prepared / "validation.parquet"
    request: dict[str, Any] = {
        "recipe": job.recipe,
        "preset": job.preset,
        "params": job.params,
        "overrides": job.overrides,
        "platform": settings.resolved_platform,
        "gpus": job.gpus,
        "model_path": str(settings.data_root / (ingredients.model.path or "")),
        "train_path": str(train),
        "validation_path": str(validation) if validation else None,
        "checkpoint_dir": str(settings.checkpoint_dir(job.id)),
        "seed": job.seed,
        "row_count": ingredients.dataset.row_count,
        "resume_from": job.resume_from,
    }
    return ComposeRequest(**request)
