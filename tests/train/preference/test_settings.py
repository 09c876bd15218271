"""What the platform composes, as the installed TRL itself takes it."""

import dataclasses

import pytest
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.trl_schema import MODEL_CLASS, TRAINERS, load_trl_schema

pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]
RECIPES = [recipe for recipe in list_recipes() if recipe.engine is Engine.TRL]
CASES = [
    pytest.param(recipe.id, preset, id=f"{recipe.id}-{preset.id}")
    for recipe in RECIPES
    for preset in recipe.presets
]


@pytest.mark.parametrize(("recipe", "preset"), CASES)
def test_every_preset_is_accepted_by_the_trainers_config_class(recipe: str, preset, tmp_path) -> None:
    from trellis_train.preference.settings import make_settings, parse_overrides

    composition = compose(
        ComposeRequest(
            recipe=recipe,
            preset=preset.id,
            # Fewer bits need bitsandbytes, which the CPU lock leaves out.
            params={"quantization": "none"} if "quantization" in preset.params else {},
            platform="cpu",  # a machine without a GPU refuses bfloat16
            gpus=1,  # several ranks would ask torchrun for their process group
            model_path="/models/it's here",
            train_path=str(tmp_path / "train.parquet"),
            checkpoint_dir=str(tmp_path),
            seed=1,
        )
    )
    assert composition.errors == []

    settings = make_settings(recipe, parse_overrides(composition.engine_overrides))

    assert type(settings.arguments).__name__ == TRAINERS[recipe].config[1]
    assert settings.arguments.output_dir == str(tmp_path)
    assert settings.model.model_name_or_path == "/models/it's here"
    assert settings.model.lora_r == (composition.params["lora_rank"] or 16)


@pytest.mark.parametrize("recipe", TRAINERS)
def test_the_defaults_read_from_the_source_are_those_of_the_class(recipe: str) -> None:
    from trellis_train.preference.settings import _load

    actual = {}
    for module, name in (MODEL_CLASS, TRAINERS[recipe].config):
        for field in dataclasses.fields(_load(module, name)):
            made = field.default_factory is not dataclasses.MISSING
            actual[field.name] = field.default_factory() if made else field.default
    schema = load_trl_schema(recipe)

    assert {name: schema.tree[name] for name in actual} == actual
    own = {"train_file", "validation_file"} | ({"reference_free"} if recipe == "agent_dpo" else set())
    assert set(schema.tree) - set(actual) == own


def test_a_setting_that_is_not_known_is_refused() -> None:
    from trellis_train.preference.settings import make_settings

    with pytest.raises(ValueError, match="Unknown TRL setting betta"):
        make_settings("dpo", {"betta": 1, "train_file": "x", "output_dir": "y"})
