"""`trellis agent pipeline`: the stages that it submits, as the API itself takes them."""

from typing import Any

import pytest
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.job_pipelines.templates import list_templates
from trellis_cli.agent_pipeline import plan_stages
from trellis_cli.errors import Problem
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.recipe_parameters import resolve_parameters
from trellis_recipes.tool_use_settings import ToolUseSettings

DATASETS = {"": "ds_rl", "sft": "ds_sft", "preference": "ds_pairs", "retrieval": "ds_queries"}


def plan(settings: ToolUseSettings | None = None, **choices: Any) -> dict[str, dict[str, Any]]:
    template = next(each for each in list_templates() if each.id == "agent")
    stages = plan_stages(
        [stage.model_dump(mode="json") for stage in template.stages],
        settings or ToolUseSettings(),
        **{
            "base": "mdl_1",
            "datasets": DATASETS,
            "preset": None,
            "own": {},
            "limit": None,
            "gpus": 1,
            **choices,
        },
    )
    return {stage["id"]: stage for stage in stages}


def test_every_training_is_one_that_the_api_takes() -> None:
    settings = ToolUseSettings.model_validate(
        {"warm_up": {"enabled": True, "focus_tags": ["tool_selection"]}}
    )

    stages = plan(settings, preset="development")

    assert list(stages) == ["warm-up", "sft", "retrieval", "rl", "evaluation"]
    for stage in stages.values():
        if stage["kind"] == "train":
            request = StageCreate.model_validate(stage)
            assert resolve_parameters(get_recipe(str(request.recipe)), None, request.params)[1] == []


def test_each_stage_has_its_rows_and_its_model() -> None:
    stages = plan()

    assert "warm-up" not in stages
    assert {name: stages[name]["dataset"] for name in ("sft", "retrieval", "rl")} == {
        "sft": "ds_sft",
        "retrieval": "ds_queries",
        "rl": "ds_pairs",
    }
    assert (stages["sft"]["model"], stages["rl"]["model"]) == ({"base": "mdl_1"}, {"stage": "sft"})
    assert stages["rl"]["recipe"] == "agent_dpo"
    assert (stages["evaluation"]["model"], stages["evaluation"]["needs"]) == (
        {"stage": "rl"},
        ["rl", "retrieval"],
    )
    (order,) = stages["evaluation"]["benchmarks"]
    assert (order["dataset"], order["split"]) == ("ds_rl", "test")


def test_settings_and_the_line_reach_the_stages() -> None:
    settings = ToolUseSettings.model_validate(
        {
            "sft": {"epochs": 1},
            "rl": {"algorithm": "grpo", "grpo": {"group_size": 8}},
            "warm_up": {"enabled": True, "samples": 50},
        }
    )

    stages = plan(settings, own={"rl": {"total_steps": 2}}, preset="production", gpus=2)

    assert stages["warm-up"]["params"] == {"epochs": 1, "max_samples": 50, "focus_tags": ""}
    assert stages["sft"]["params"] == {"epochs": 1}
    assert stages["sft"]["model"] == {"stage": "warm-up"}
    assert (stages["rl"]["recipe"], stages["rl"]["dataset"]) == ("agent_grpo", "ds_rl")
    assert stages["rl"]["params"] == {"group_size": 8, "total_steps": 2}
    assert (stages["rl"]["preset"], stages["rl"]["resources"]) == ("production", {"gpus": 2})
    assert "preset" not in stages["retrieval"]


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(Problem, match="unknown stage 'reward'"):
        plan(own={"reward": {"total_steps": 2}})
    with pytest.raises(Problem, match="no rows 'preference'"):
        plan(datasets={"": "a", "sft": "b", "retrieval": "c"})
