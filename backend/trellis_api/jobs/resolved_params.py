"""The parameters that jobs ran with: as they were composed, or by today's recipe for jobs from before."""

from collections.abc import Sequence

from sqlmodel import Session
from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.recipe_parameters import Value, resolve_parameters

from trellis_api.jobs import configuration
from trellis_api.jobs.models import Job


def map_resolved(session: Session, *, jobs: Sequence[Job]) -> dict[str, dict[str, Value] | None]:
    """Map each job's id to its parameters: those stored with it, else those of ``resolve_by_recipe``."""
    stored = configuration.map_params(session, job_ids=[job.id for job in jobs])
    return {job.id: stored[job.id] if job.id in stored else resolve_by_recipe(job) for job in jobs}


def resolve_by_recipe(job: Job) -> dict[str, Value] | None:
    """Resolve what a job was given, with its preset's and recipe's values; None if the recipe is unknown.

    Sizes that its composition derived aren't among them: without a stored configuration, nobody knows them.
    """
    try:
        recipe = get_recipe(job.recipe)
    except UnknownRecipe:
        return None
    preset = next((each for each in recipe.presets if each.id == job.preset), None)
    values = resolve_parameters(recipe, preset, job.params)[0]
    derived = {each.name for each in recipe.parameters if each.auto and values[each.name] is None}
    return {name: value for name, value in values.items() if name not in derived}
