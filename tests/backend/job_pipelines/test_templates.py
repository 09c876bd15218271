"""Templates of pipelines: what they name exists."""

from fastapi.testclient import TestClient
from trellis_api.job_pipelines.templates import list_templates
from trellis_api.models.catalogue import find_entry
from trellis_data.samples.listing import find_sample
from trellis_recipes.catalogue import get_recipe


def test_the_templates_name_recipes_presets_samples_and_models_that_there_are() -> None:
    for template in list_templates():
        assert template.missing_recipes == []
        assert template.model is None or find_entry(template.model) is not None
        for stage in template.stages:
            samples = [name for name in (stage.sample, stage.validation_sample) if name is not None]
            assert all(find_sample(name) is not None for name in samples)
            if stage.recipe is not None:
                recipe = get_recipe(stage.recipe)
                assert stage.preset is None or stage.preset in {preset.id for preset in recipe.presets}
                assert set(stage.params) <= {parameter.name for parameter in recipe.parameters}


def test_the_demo_trains_on_samples_in_all_stages(client: TestClient) -> None:
    items = client.get("/api/v1/job-pipelines/templates").json()["items"]
    demo = next(item for item in items if item["id"] == "demo")

    assert demo["model"] == "starter"
    assert [stage["sample"] for stage in demo["stages"]] == ["addition-answers", "addition-prompts"]
