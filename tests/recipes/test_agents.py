"""Recipes of agents: what their loops are told, and what is checked before anything runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_recipes import catalogue
from trellis_recipes.agents import make_agent_task
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, compose

#: Weights of the reward begin with one of them.
WEIGHTS = ("reward", "penalty")
Build = Callable[..., ComposeRequest]


def test_the_options_of_an_agent_are_its_parameters(request_for: Build) -> None:
    composition = compose(request_for(recipe="linksearch", params={"mode": "rollout"}))

    task = make_agent_task(get_recipe("linksearch"), composition.params, environment_path="/data/env")

    assert task is not None
    assert (task.kind, task.environment_path) == ("linksearch", "/data/env")
    assert {name: value for name, value in task.options.items() if name.partition("_")[0] not in WEIGHTS} == {
        "mode": "rollout",
        "max_turns": 6,
        "max_profiles": 10,
        "max_calls": 4,
        "detailed_logging": False,
        "tool_template": "model",
    }


def test_a_recipe_without_an_agent_has_no_task() -> None:
    assert make_agent_task(get_recipe("grpo"), {}) is None


def test_link_search_starts_from_the_defaults_of_its_specification() -> None:
    defaults = {parameter.name: parameter.default for parameter in get_recipe("linksearch").parameters}

    assert {
        "max_turns": 15,
        "max_profiles": 10,
        "max_calls": 4,
        "group_size": 4,
        "learning_rate": 1e-5,
        "max_response_length": 4096,
        "total_steps": 200,
        "validate_every": 10,
        "save_every": 10,
        "mode": "masked",
    }.items() <= defaults.items()


def test_no_rewards_of_single_responses_are_configured(request_for: Build) -> None:
    composition = compose(request_for(recipe="linksearch"))

    assert composition.config["reward"]["custom_reward_function"]["path"] is None
    assert compose(request_for()).config["reward"]["custom_reward_function"]["path"] is not None


def test_an_environment_is_required(request_for: Build) -> None:
    composition = compose(request_for(recipe="linksearch", params={"environment": None}))

    assert [(issue.code, issue.field) for issue in composition.errors] == [
        ("environment_missing", "params.environment")
    ]


@pytest.mark.parametrize(
    ("turns", "tokens", "errors", "warnings"),
    [(20, 600, ["turns_do_not_fit"], []), (8, 512, [], ["turns_are_short"]), (4, 1024, [], [])],
)
def test_the_longest_episode_has_to_hold_its_turns(
    turns: int, tokens: int, errors: list[str], warnings: list[str], request_for: Build
) -> None:
    params = {"max_turns": turns, "max_response_length": tokens}

    composition = compose(request_for(recipe="linksearch", params=params))

    assert [issue.code for issue in composition.errors] == errors
    assert [issue.code for issue in composition.warnings if issue.code.startswith("turns")] == warnings


def test_one_turn_needs_no_room_for_more(request_for: Build) -> None:
    params = {"max_turns": 100, "max_response_length": 64, "mode": "simple"}

    assert compose(request_for(recipe="linksearch", params=params)).errors == []


def test_a_recipe_that_names_no_known_agent_is_refused(tmp_path: Path) -> None:
    source = (catalogue.CATALOGUE / "linksearch.yaml").read_text()
    path = tmp_path / "linksearch.yaml"
    path.write_text(source.replace("agent: linksearch\n", "agent: nosuch\n"))

    with pytest.raises(ValueError, match="names the agent 'nosuch'"):
        catalogue._load(path)
