"""The recipes as they are shipped."""

import re

import pytest
from trellis_contracts.recipe import Recipe
from trellis_recipes.catalogue import UnknownRecipe, get_recipe, list_recipes
from trellis_recipes.recipe_parameters import check_value
from trellis_recipes.schemas import schema_of

RECIPES = list_recipes()
#: Every algorithm that the platform trains, and the agents.
BY_FAMILY = {
    "supervised": {"sft", "cpt"},
    "rl": {
        "ppo",
        "grpo",
        "dr_grpo",
        "gspo",
        "dapo",
        "rloo",
        "remax",
        "reinforce_plus_plus",
        "reinforce_plus_plus_baseline",
        "opo",
        "cispo",
        "sapo",
        "gpg",
    },
    "preference": {"dpo", "kto", "reward_model", "orpo", "simpo"},
    "agent": {"linksearch", "tune", "agent_sft", "agent_dpo", "agent_ppo", "agent_grpo", "agent_retrieval"},
}
#: They have presets for sizes of models besides those for machines.
OF_THE_AGENT_PIPELINE = {"agent_dpo", "agent_grpo", "agent_ppo", "agent_sft"}
#: What the launch form shows before anybody asks for more.
MOST_ESSENTIAL = 10


def texts(recipe: Recipe):
    yield recipe.title
    yield recipe.description
    for parameter in recipe.parameters:
        yield from (parameter.title, parameter.help)
    for preset in recipe.presets:
        yield preset.title


def test_the_catalogue_holds_these_recipes_and_no_others() -> None:
    listed: dict[str, set[str]] = {}
    for recipe in RECIPES:
        listed.setdefault(recipe.family, set()).add(recipe.id)

    assert listed == BY_FAMILY


def test_an_unknown_recipe_is_named() -> None:
    with pytest.raises(UnknownRecipe, match="nosuch"):
        get_recipe("nosuch")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
class TestEveryRecipe:
    def test_has_a_preset_for_each_size_of_machine(self, recipe: Recipe) -> None:
        sizes = ["development", "production"] if recipe.id in OF_THE_AGENT_PIPELINE else []
        machines = ["cpu-tiny", "cpu-small", "gpu-24gb", "gpu-80gb", "gpu-8x80gb"]

        assert [preset.id for preset in recipe.presets] == [*machines, *sizes]

    def test_is_written_in_both_languages(self, recipe: Recipe) -> None:
        for text in texts(recipe):
            assert text.en.strip()
            assert text.zh.strip()
            assert not re.search(r"[\u4e00-\u9fff]", text.en)

    def test_accepts_its_own_defaults(self, recipe: Recipe) -> None:
        problems = [check_value(parameter, parameter.default)[1] for parameter in recipe.parameters]

        assert not any(problems)

    def test_names_each_parameter_once(self, recipe: Recipe) -> None:
        names = [parameter.name for parameter in recipe.parameters]

        assert len(names) == len(set(names))

    def test_asks_for_few_parameters_at_first(self, recipe: Recipe) -> None:
        essential = [parameter.name for parameter in recipe.parameters if not parameter.advanced]

        assert len(essential) <= MOST_ESSENTIAL, essential
        assert "learning_rate" in essential

    def test_maps_its_parameters_to_keys_of_the_installed_engine(self, recipe: Recipe) -> None:
        schema = schema_of(recipe)

        unknown = [
            key
            for parameter in recipe.parameters
            for key in parameter.engine_keys
            if schema.find(key) is None
        ]

        assert unknown == []
