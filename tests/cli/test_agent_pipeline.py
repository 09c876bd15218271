"""`trellis agent pipeline`: the stages that it submits, as the API itself takes them."""

from pathlib import Path
from typing import Any

import pytest
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.job_pipelines.templates import list_templates
from trellis_cli.agent_pipeline import Rows, _find_own, plan_stages, read_datasets, refuse_local_rows
from trellis_cli.environments import _once, _show
from trellis_cli.errors import Problem
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.recipe_parameters import resolve_parameters
from trellis_recipes.tool_use_settings import ToolUseSettings

IDS = {"": "ds_rl", "sft": "ds_sft", "preference": "ds_pairs", "retrieval": "ds_queries"}
DATASETS = {name: Rows(dataset) for name, dataset in IDS.items()}


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
    with pytest.raises(Problem, match="--set evaluation: this stage evaluates") as evaluates:
        plan(own={"evaluation": {"limit": 5}})
    assert "--limit" in (evaluates.value.hint or "")
    with pytest.raises(Problem, match="no rows 'preference'") as missing:
        plan(datasets={"": Rows("a"), "sft": Rows("b"), "retrieval": Rows("c")})
    assert "--dataset pairs=NAME" in (missing.value.hint or "")
    with pytest.raises(Problem, match="--num-samples only works with dpo, not grpo"):
        plan(ToolUseSettings.model_validate({"rl": {"algorithm": "grpo"}}), num_samples=4)


def test_pairs_are_sampled_from_the_sft_model_where_that_is_asked_for() -> None:
    without_pairs = {name: rows for name, rows in DATASETS.items() if name != "preference"}
    stage = plan(num_samples=6, datasets=without_pairs)["rl"]

    assert (stage["recipe"], stage["dataset"], stage["model"]) == ("agent_dpo", "ds_rl", {"stage": "sft"})
    assert stage["params"] == {"num_samples": 6}
    assert resolve_parameters(get_recipe("agent_dpo"), None, stage["params"])[1] == []


def test_rows_of_ones_own_need_no_splits_and_no_queries() -> None:
    own = {
        "sft": Rows("ds_dialogs", frozenset({"train"})),
        "": Rows("ds_prompts", frozenset({"train", "validation"})),
    }

    stages = plan(ToolUseSettings.model_validate({"rl": {"algorithm": "grpo"}}), datasets=own)

    assert list(stages) == ["sft", "rl", "evaluation"]
    assert stages["evaluation"]["needs"] == ["rl"]
    assert "validation_dataset" not in stages["sft"]
    assert (stages["rl"]["dataset_split"], stages["rl"]["validation_split"]) == ("train", "validation")
    assert stages["evaluation"]["benchmarks"][0]["split"] == "validation"
    for stage in stages.values():
        StageCreate.model_validate(stage)


class StandInClient:
    """Answers with one environment."""

    def __init__(self, kind: str, datasets: dict[str, list[str]]) -> None:
        listed = [
            {"name": name, "dataset": {"id": f"ds_{name}"}, "splits": dict.fromkeys(splits, 1)}
            for name, splits in datasets.items()
        ]
        self._found = {"id": "env_1", "name": "mine", "kind": kind, "state": "ready", "datasets": listed}
        self._found["splits"] = {}

    def get(self, path: str) -> dict[str, Any]:
        return self._found

    def pages(self, path: str, **_: Any) -> list[dict[str, Any]]:
        return [self._found]


def test_own_tools_give_their_rows_with_the_splits_that_they_have() -> None:
    client: Any = StandInClient("own_tools", {"": ["train", "eval"], "sft": ["train"]})

    rows = read_datasets(client, "mine")
    stages = plan(ToolUseSettings.model_validate({"rl": {"algorithm": "grpo"}}), datasets=rows)

    assert list(stages) == ["sft", "rl", "evaluation"]
    assert "validation_dataset" not in stages["sft"]
    assert (stages["rl"]["dataset"], stages["rl"]["validation_split"]) == ("ds_", "eval")
    assert stages["evaluation"]["benchmarks"][0]["split"] == "eval"


@pytest.mark.parametrize(("rows", "batch"), [(40, 32), (3, 2), (64, None), (None, None)])
def test_a_batch_of_requests_is_no_larger_than_the_rows(rows: int | None, batch: int | None) -> None:
    queries = {"retrieval": Rows("ds_queries", train_rows=rows)}

    stages = plan(datasets=DATASETS | queries)
    chosen = plan(datasets=DATASETS | queries, own={"retrieval": {"batch_size": 4}})

    assert stages["retrieval"]["params"].get("batch_size") == batch
    assert chosen["retrieval"]["params"]["batch_size"] == 4


def test_parameters_of_a_retrieval_without_requests_are_refused_with_what_it_needs() -> None:
    without = {name: rows for name, rows in DATASETS.items() if name != "retrieval"}

    with pytest.raises(Problem, match="no requests to train tool retrieval on") as caught:
        plan(datasets=without, own={"retrieval": {"epochs": 1}})

    assert "11 tools" in str(caught.value.hint)


def test_an_environment_without_rows_for_the_pipeline_is_refused() -> None:
    client: Any = StandInClient("maths", {})

    with pytest.raises(Problem, match="needs toolbox or own_tools"):
        read_datasets(client, "mine")


def test_rows_and_parameters_that_are_given_twice_are_refused(tmp_path: Path) -> None:
    client: Any = StandInClient("own_tools", {})
    with pytest.raises(Problem, match="--dataset dialogs is given twice"):
        _find_own(client, ["dialogs=mine", "dialogs=mine"])

    path = tmp_path / "tools.py"
    assert _once([("a", 1)], [("code", path)]) == ({"a": 1}, {"code": path})
    for values, files in (
        ([("code", "a")], [("code", path)]),
        ([("code", "a"), ("code", "b")], []),
        ([], [("code", path)] * 2),
    ):
        with pytest.raises(Problem, match="code is given twice"):
            _once(values, files)


def test_names_of_tools_and_arguments_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    tool = {"name": "a", "description": "", "parameters": {"properties": {"[bold]": {}, "x[/]": {}}}}
    found = {"id": "env_1", "name": "mine", "kind": "own_tools", "state": "ready", "reason": None}

    _show({**found, "counts": {}, "datasets": [], "tools": [tool]}, as_json=False)

    assert "[bold], x[/]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "settings",
    [{"sft": {"train_data": "rows.jsonl"}}, {"sft": {"dev_data": "x"}}, {"warm_up": {"data": "rows.jsonl"}}],
)
def test_rows_of_this_machine_are_refused_with_what_to_name_instead(settings: dict[str, Any]) -> None:
    with pytest.raises(Problem, match="is for `trellis agent train`") as refusal:
        refuse_local_rows(ToolUseSettings.model_validate(settings))

    assert "--dataset dialogs=NAME" in str(refusal.value.hint)
    refuse_local_rows(ToolUseSettings())


def test_the_reward_of_the_settings_is_a_parameter_of_the_last_training() -> None:
    settings = {"rl": {"algorithm": "grpo"}, "reward": {"penalties": {"wrong_tool": -0.9}}}

    params = plan(ToolUseSettings.model_validate(settings))["rl"]["params"]

    assert params["rewards"][0]["options"]["penalty_wrong_tool"] == -0.9
