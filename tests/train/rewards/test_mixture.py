"""Mixtures, and the adapter through which verl calls them."""

import subprocess
import sys

import pytest
from omegaconf import OmegaConf
from trellis_recipes.compose import ComposeRequest, compose
from trellis_train.rewards.functions import REWARDS
from trellis_train.rewards.mixture import Mixture
from trellis_train.rewards.verl_adapter import compute_score

MIXTURE = [{"name": "exact", "weight": 0.8}, {"name": "format", "weight": 0.2}]


def test_the_score_is_the_weighted_sum_of_the_parts() -> None:
    result = Mixture.parse(MIXTURE).score("<think>3+4</think>7", "8")

    assert result == {"score": pytest.approx(0.2), "acc": 0.0, "exact": 0.0, "format": 1.0}


def test_being_correct_is_decided_by_the_first_reward() -> None:
    result = Mixture.parse(MIXTURE).score("7", "7")

    assert (result["acc"], result["score"]) == (1.0, pytest.approx(0.8))


@pytest.mark.parametrize("rewards", [[], [{"name": "nosuch"}], [{"name": "exact"}, {"name": "exact"}]])
def test_a_mixture_that_makes_no_sense_is_refused(rewards: list) -> None:
    with pytest.raises(ValueError, match="reward"):
        Mixture.parse(rewards)


def test_verl_may_pass_its_own_config_objects() -> None:
    rewards = OmegaConf.create([{"name": "regex", "weight": 1.0, "options": {"pattern": r"= (\d+)"}}])

    result = compute_score("dataset", "2+2 = 4", "4", {"index": 0}, rewards=rewards)

    assert result == {"score": 1.0, "acc": 1.0, "regex": 1.0}


def test_every_response_of_a_run_has_the_same_keys() -> None:
    keys = {tuple(compute_score("d", text, "7", rewards=MIXTURE)) for text in ("", "7", "<think>a</think>7")}

    assert len(keys) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"reward": "exact"},
        {"reward": "contains"},
        {"reward": "regex", "reward_pattern": r"(\d+)'s"},
        {"reward": "gsm8k", "format_weight": 0.1},
        {"reward": "math", "length_penalty": 0.5, "length_penalty_from": 100},
    ],
)
def test_what_a_recipe_composes_can_be_scored(params: dict) -> None:
    request = ComposeRequest(
        recipe="grpo",
        params=params,
        platform="cpu",
        gpus=1,
        model_path="m",
        train_path="/t/train.parquet",
        checkpoint_dir="/c",
        seed=0,
    )
    composition = compose(request)
    function = composition.config["reward"]["custom_reward_function"]

    result = compute_score("dataset", "7", "7", **function["reward_kwargs"])

    assert composition.errors == []
    assert function["path"] == f"pkg://{compute_score.__module__}"
    assert function["name"] == compute_score.__name__
    assert set(result) - {"score", "acc"} <= set(REWARDS)


def test_scoring_imports_no_torch() -> None:
    program = (
        "import sys; from trellis_train.rewards.verl_adapter import compute_score;"
        "compute_score('d', '7', '7'); print('torch' in sys.modules)"
    )

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.strip() == "False"
