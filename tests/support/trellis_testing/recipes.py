"""What a recipe needs of the platform before it composes."""

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import OmegaConf
from trellis_recipes.agents import RESOURCES
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.request import Composition
from trellis_recipes.schema import ROOT_CONFIGS, verl_folder


def resources_of(recipe: str) -> dict[str, str]:
    """Return values for the parameters that name an environment or a workflow; none without such a recipe."""
    if recipe not in {each.id for each in list_recipes()}:
        return {}
    return {
        parameter.name: f"{parameter.type}_1"
        for parameter in get_recipe(recipe).parameters
        if parameter.type in RESOURCES
    }


def engines_own_view(composition: Composition) -> dict:
    """Return the configuration that verl itself would read, given the overrides."""
    folder = str(verl_folder() / "trainer" / "config")
    with initialize_config_dir(config_dir=folder, version_base=None):
        config = hydra_compose(ROOT_CONFIGS[composition.engine], overrides=composition.engine_overrides)
    return OmegaConf.to_container(config, resolve=True)
