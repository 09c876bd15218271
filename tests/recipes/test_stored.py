"""Compositions that wait for their launch: what is kept of them, and what a launch adds."""

import importlib.metadata
import json
from collections.abc import Callable
from typing import Any

import pytest
from trellis_contracts.recipe import Text
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import compose
from trellis_recipes.request import ComposeRequest, Composition, LaunchPart
from trellis_recipes.stored import StoredComposition, complete, hash_recipe, make_stored

Build = Callable[..., ComposeRequest]
#: All that a launch decides, by a recipe of each engine.
LAUNCH_PART = {
    "grpo": {
        "actor_rollout_ref.model.path",
        "critic.model.path",
        "data.train_files",
        "data.val_files",
        "trainer.default_local_dir",
        "trainer.n_gpus_per_node",
        "trainer.nnodes",
        "trainer.resume_from_path",
        "trainer.resume_mode",
    },
    "sft": {
        "data.train_files",
        "data.val_files",
        "model.path",
        "trainer.default_local_dir",
        "trainer.n_gpus_per_node",
        "trainer.nnodes",
        "trainer.resume_from_path",
        "trainer.resume_mode",
    },
    "dpo": {
        "eval_on_start",
        "model_name_or_path",
        "output_dir",
        "resume_from_checkpoint",
        "train_file",
        "validation_file",
    },
    "agent_retrieval": {"model_path", "output_dir", "resume_from", "train_file", "validation_file"},
}
#: A launch elsewhere: all differs, the nodes too.
ELSEWHERE = LaunchPart(
    node_gpus=[2, 2],
    model_path="/other/models/starter",
    train_path="/other/jobs/job_1/attempt-2/prepared/train.parquet",
    checkpoint_dir="/other/jobs/job_1/checkpoints",
    resume_from="/other/jobs/job_1/checkpoints/global_step_3",
)
#: As an earlier version wrote it: whatever is added, jobs that wait with such a document are launched.
WRITTEN_BEFORE = """{"recipe": "agent_retrieval", "engine": "retrieval", "platform": "cpu", "gpus": 1,
"preset": null, "params": {"validation_rows": 0}, "derived": [],
"settings": {"learning_rate": 1e-05, "device": "cpu"},
"env": {"TOKENIZERS_PARALLELISM": "false"}, "row_format": "verl-rl", "agent": null,
"composed_with": {"recipe": "00", "packages": {"trellis-platform": "0.1.0"}}}"""


def keep(request: ComposeRequest) -> StoredComposition:
    """What is stored of a request, through the text that a database holds."""
    text = make_stored(compose(request), request).model_dump_json()
    return StoredComposition.model_validate_json(text)


def part_of(request: ComposeRequest) -> LaunchPart:
    return LaunchPart(**{name: getattr(request, name) for name in LaunchPart.model_fields})


def by_key(composition: Composition) -> dict[str, str]:
    return dict(line.removeprefix("+").split("=", 1) for line in composition.engine_overrides)


@pytest.mark.parametrize("recipe", LAUNCH_PART)
def test_a_launch_decides_its_part_and_nothing_else(recipe: str, request_for: Build) -> None:
    request = request_for(recipe=recipe, gpus=1 if recipe == "agent_retrieval" else 4)
    submitted = compose(request)
    stored = keep(request)

    here = complete(stored, part_of(request))
    part = ELSEWHERE if recipe == "grpo" else ELSEWHERE.model_copy(update={"node_gpus": None})
    there = complete(stored, part)

    assert LAUNCH_PART[recipe].isdisjoint(stored.settings)
    assert stored.settings.keys() | LAUNCH_PART[recipe] == by_key(submitted).keys()
    assert here.errors == there.errors == []
    assert here.engine_overrides == submitted.engine_overrides
    assert json.dumps(here.config) == json.dumps(submitted.config)
    assert (here.command, here.env, here.params) == (submitted.command, submitted.env, submitted.params)
    before, after = by_key(here), by_key(there)
    assert before.keys() == after.keys()
    assert {key for key in before if before[key] != after[key]} <= LAUNCH_PART[recipe]
    assert "/data/" not in there.command + str(there.engine_overrides) + json.dumps(there.config)


def test_a_launch_spreads_the_gpus_over_the_nodes_that_there_are(request_for: Build) -> None:
    stored = keep(request_for(gpus=4, node_gpus=[4]))

    spread = complete(stored, ELSEWHERE)
    too_few = complete(stored, ELSEWHERE.model_copy(update={"node_gpus": [2, 1]}))

    trainer = spread.config["trainer"]
    assert (trainer["nnodes"], trainer["n_gpus_per_node"]) == (2, 2)
    assert [issue.code for issue in too_few.errors] == ["not_enough_gpus"]


def test_an_agents_options_are_kept(request_for: Build) -> None:
    stored = keep(request_for(recipe="linksearch", params={"mode": "rollout"}))

    assert stored.agent is not None
    assert (stored.agent.kind, stored.agent.options["mode"]) == ("linksearch", "rollout")


def test_a_setting_that_the_engine_has_no_more_is_named(
    request_for: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"0 of {name}")
    request = request_for()
    stored = keep(request)
    monkeypatch.undo()
    stored.settings["trainer.gone"] = 1

    (issue,) = complete(stored, part_of(request)).errors

    assert (issue.code, issue.field) == ("unknown_engine_key", "overrides.trainer.gone")
    assert "verl 0 of verl" in issue.message


def test_a_path_that_the_engine_would_not_get_as_it_is_is_refused(request_for: Build) -> None:
    request: Any = request_for()
    part = part_of(request).model_copy(update={"model_path": "/data/${oc.env:HOME}"})

    assert [issue.field for issue in complete(keep(request), part).errors] == ["model_path"]


def test_the_hash_of_a_recipe_tells_what_it_sets_and_not_how_it_is_worded() -> None:
    recipe = get_recipe("grpo")
    reworded, reset = recipe.model_copy(deep=True), recipe.model_copy(deep=True)
    other = Text(en="Other", zh="其他")
    reworded.title = reworded.description = reworded.presets[0].title = other
    reworded.parameters[0].title = reworded.parameters[0].help = other
    reset.presets[0].params["learning_rate"] = 0.123

    assert hash_recipe(reworded) == hash_recipe(recipe) != hash_recipe(reset)


def test_what_was_stored_before_can_be_launched() -> None:
    stored = StoredComposition.model_validate_json(WRITTEN_BEFORE)

    composition = complete(stored, ELSEWHERE.model_copy(update={"node_gpus": None}))

    assert composition.errors == []
    assert composition.engine_overrides[:2] == ["learning_rate=1e-05", "device=cpu"]
