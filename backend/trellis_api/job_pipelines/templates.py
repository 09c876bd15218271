"""Pipelines to begin with, as ``templates.yaml`` has them."""

from functools import cache
from pathlib import Path

import yaml
from pydantic import TypeAdapter
from trellis_recipes.catalogue import list_recipes

from trellis_api.job_pipelines.schemas import JobPipelineTemplate

TEMPLATES_FILE = Path(__file__).parent / "templates.yaml"


def list_templates() -> list[JobPipelineTemplate]:
    """List all templates; each names those of its recipes that this platform doesn't have."""
    known = {recipe.id for recipe in list_recipes()}
    return [
        template.model_copy(
            update={
                "missing_recipes": sorted({stage.recipe for stage in template.stages if stage.recipe} - known)
            }
        )
        for template in _read()
    ]


@cache
def _read() -> list[JobPipelineTemplate]:
    entries = yaml.safe_load(TEMPLATES_FILE.read_text(encoding="utf-8"))
    return TypeAdapter(list[JobPipelineTemplate]).validate_python(entries)
