"""Keeps what a training job was composed to when it was submitted, so that every attempt runs with just that.

A recipe, preset or default that changes in the meantime, with an upgrade, say, concerns jobs submitted later.
"""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session, col, select
from trellis_contracts.recipe import DataFormat, Strict
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.request import ComposeRequest, Composition
from trellis_recipes.stored import StoredComposition, make_stored

from trellis_api.datasets.view import DatasetView
from trellis_api.jobs.composition import JobInputs
from trellis_api.jobs.fit import data as data_fit
from trellis_api.jobs.models import Job, JobConfiguration


class Reading(Strict):
    """What rows are read as, and the columns that play the format's roles."""

    format: DataFormat
    columns: dict[str, str]


class Configuration(Strict):
    """All that was decided of a training job; as in ``StoredComposition``, new fields need defaults."""

    composition: StoredComposition
    train_data: Reading
    validation_data: Reading | None


def configure(
    job: Job, job_inputs: JobInputs, *, request: ComposeRequest, composition: Composition
) -> Configuration:
    """Put together what a job runs with, from a composition without errors."""
    validation = job_inputs.validation_dataset
    return Configuration(
        composition=make_stored(composition, request),
        train_data=_read(job, job_inputs.dataset, split="training"),
        validation_data=_read(job, validation, split="validation") if validation else None,
    )


def store(session: Session, *, job: Job, configuration: Configuration) -> None:
    """Write the configuration of a job whose row is written."""
    session.add(JobConfiguration(job_id=job.id, document=configuration.model_dump(mode="json")))


def find(session: Session, *, job_id: str) -> Configuration | None:
    """Return the stored configuration, or None for a job from before configurations were stored."""
    row = session.get(JobConfiguration, job_id)
    return None if row is None else Configuration.model_validate(row.document)


def find_params(session: Session, *, job_id: str) -> dict[str, Any] | None:
    """Return the values of all parameters that a job runs with; None as in ``find``."""
    return map_params(session, job_ids=[job_id]).get(job_id)


def map_params(session: Session, *, job_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Map the ids of those jobs that have a stored configuration to their parameters' values."""
    if not job_ids:
        return {}
    params = col(JobConfiguration.document)[("composition", "params")].as_json()
    statement = select(JobConfiguration.job_id, params).where(col(JobConfiguration.job_id).in_(job_ids))
    return dict(session.exec(statement).all())


def _read(job: Job, dataset: DatasetView, *, split: data_fit.Split) -> Reading:
    choice = data_fit.choice_of(job, dataset, split=split)
    data_format, columns = data_fit.read_for(get_recipe(job.recipe), dataset, choice)
    return Reading(format=data_format, columns=columns)
