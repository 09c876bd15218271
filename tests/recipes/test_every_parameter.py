"""Every parameter of every recipe is changed: the job must change too, or setting it would have no effect."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import Parameter, Recipe
from trellis_recipes.agents import RESOURCES, make_agent_task
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.recipe_parameters import Value, check_value

Build = Callable[..., ComposeRequest]
REPOSITORY = Path(__file__).parents[2]
#: What has to be set besides for a parameter to mean anything, as its help says.
SETTINGS_THAT_A_PARAMETER_NEEDS: dict[str, dict[str, Any]] = {
    "epochs": {"total_steps": None},
    "reward_pattern": {"reward": "regex"},
    "length_penalty_from": {"length_penalty": 0.5},
    "lora_targets": {"lora_rank": 8},
    "quantize_base": {"lora_rank": 8},
    "quantization": {"lora_rank": 8},
}
_ROWS = "verl/trellis_train/agents/tooluse/training/row_selection.py"
_PAIRS = "verl/trellis_train/agents/tooluse/training/sampled_pairs.py"
#: Parameters that reach no engine: the platform reads them in these files, by these words.
READ_ELSEWHERE: dict[str, tuple[str, str]] = {
    "keep_checkpoints": ("backend/trellis_api/jobs/checkpoints/service.py", '"keep_checkpoints"'),
    "validation_rows": ("verl/trellis_train/data/prepare.py", '.get("validation_rows")'),
    "target_accuracy": ("verl/trellis_train/engines/ppo.py", '["target_accuracy"]'),
    "patience": ("verl/trellis_train/engines/ppo.py", '["patience"]'),
    "auxiliary_models": ("backend/trellis_api/endpoints/auxiliary.py", ".get(AUXILIARY)"),
    "mix_tasks": (_ROWS, '.get("mix_tasks"'),
    "weight_tool_selection": (_ROWS, 'f"weight_{name}"'),
    "weight_multi_step_planning": (_ROWS, 'f"weight_{name}"'),
    "weight_timing_decision": (_ROWS, 'f"weight_{name}"'),
    "weight_tool_retrieval": (_ROWS, 'f"weight_{name}"'),
    "max_samples": (_ROWS, '.get("max_samples")'),
    "focus_tags": (_ROWS, '.get("focus_tags")'),
    "use_coreset_selection": (_ROWS, '.get("use_coreset_selection")'),
    "coreset_target_size": (_ROWS, '["coreset_target_size"]'),
    "coreset_strategy": (_ROWS, '["coreset_strategy"]'),
    "use_online_continual": (_ROWS, '.get("use_online_continual")'),
    "continual_buffer": (_ROWS, '["continual_buffer"]'),
    "continual_buffer_size": (_ROWS, '["continual_buffer_size"]'),
    "continual_replay_ratio": (_ROWS, '["continual_replay_ratio"]'),
    "num_samples": (_PAIRS, '["num_samples"]'),
    "max_sample_tokens": (_PAIRS, '["max_sample_tokens"]'),
    "min_margin": (_PAIRS, '["min_margin"]'),
    "rewards": (_PAIRS, '.get("rewards")'),
}


def told(recipe: Recipe, request: ComposeRequest) -> tuple[Any, ...]:
    """All that a job is told, but for the list of its parameters."""
    composition = compose(request)
    wrong = [issue for issue in composition.errors if issue.code in ("invalid_value", "unknown_parameter")]
    assert wrong == []
    task = make_agent_task(recipe, composition.params)
    return composition.config, composition.engine_overrides, composition.env, task


def another_value(parameter: Parameter, value: Value) -> Value:
    """A value that the parameter accepts, other than the present one."""
    number = value if isinstance(value, int | float) else 0
    candidates: dict[str, list[Any]] = {
        "bool": [not value],
        "choice": list(parameter.choices),
        "str": ["q_proj"],
        "int": [2 * int(number), int(number) + 1, int(number) - 1],
        "float": [number / 2, number + 0.125, number + 1.5],
        "rewards": [[{"name": "contains"}]],
    }
    accepted = (check_value(parameter, each) for each in candidates[parameter.type] if each != value)
    return next(accepted_value for accepted_value, problem in accepted if problem is None)


def is_told_to_the_job(parameter: Parameter) -> bool:
    """Whether changing it must change the job; a choice of one cannot be changed."""
    return (
        parameter.name not in READ_ELSEWHERE
        and parameter.type not in RESOURCES
        and len(parameter.choices) != 1
    )


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda recipe: recipe.id)
def test_every_changed_parameter_changes_the_job(recipe: Recipe, request_for: Build) -> None:
    ignored = []

    for parameter in filter(is_told_to_the_job, recipe.parameters):
        needed = SETTINGS_THAT_A_PARAMETER_NEEDS.get(parameter.name, {})
        before = request_for(recipe=recipe.id, preset="cpu-tiny", params=needed)
        value = another_value(parameter, compose(before).params[parameter.name])
        after = request_for(recipe=recipe.id, preset="cpu-tiny", params={**needed, parameter.name: value})
        if told(recipe, before) == told(recipe, after):
            ignored.append(f"{parameter.name}={value}")

    assert ignored == []


def test_what_no_engine_is_told_is_read_by_the_platform() -> None:
    for parameter, (file, words) in READ_ELSEWHERE.items():
        assert words in (REPOSITORY / file).read_text(), parameter


def test_the_exceptions_are_parameters_that_reach_no_engine() -> None:
    """Else a parameter could lose what reads it unnoticed."""
    parameters = {parameter.name: parameter for recipe in list_recipes() for parameter in recipe.parameters}

    assert READ_ELSEWHERE.keys() | SETTINGS_THAT_A_PARAMETER_NEEDS.keys() <= parameters.keys()
    assert not any(parameters[name].engine_keys for name in READ_ELSEWHERE)


def test_an_environment_and_a_workflow_reach_the_agent() -> None:
    recipe = get_recipe("tune")
    params = {parameter.name: parameter.default for parameter in recipe.parameters}

    task = make_agent_task(recipe, params, environment_path="/e", workflow_path="/w.py")

    assert task is not None
    assert (task.environment_path, task.workflow_path) == ("/e", "/w.py")
