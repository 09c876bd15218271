"""Mixtures, and the adapter through which verl calls them."""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.rewards import check_mixture, reward_kinds
from trellis_train.hooks.reward_errors import RewardsFailing, judge_errors
from trellis_train.rewards.catalogue import build_scorer
from trellis_train.rewards.error_notes import MAX_NOTES, ErrorNotes, read_last_note
from trellis_train.rewards.functions import REWARDS
from trellis_train.rewards.mixture import Mixture
from trellis_train.rewards.resources import ScoringPlace
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.rewards.verl_adapter import compute_score
from trellis_train.rollout.scoring import describe_sample


def score(rewards: Any, response: str, answer: str) -> dict[str, float]:
    sample = Sample(response=response, answer=answer)
    return asyncio.run(Mixture.parse(rewards).score(sample)).as_verl_result()


#: Options without a default, and those that name something that the platform hands over.
NEEDED = {"regex": {"pattern": "a"}, "json_schema": {"schema": "{}"}}
HANDED_OVER = {
    "python": {"file": "rwf_a"},
    "judge": {"endpoint": "strict"},
    "reward_model": {"model": "mdl_a"},
}
MIXTURE = [{"name": "exact", "weight": 0.8}, {"name": "format", "weight": 0.2}]


def test_the_score_is_the_weighted_sum_of_the_parts() -> None:
    result = score(MIXTURE, "<think>3+4</think>7", "8")

    assert result == {"score": pytest.approx(0.2), "acc": 0.0, "exact": 0.0, "format": 1.0, "error": 0.0}


def test_being_correct_is_decided_by_the_first_reward() -> None:
    result = score(MIXTURE, "7", "7")

    assert (result["acc"], result["score"]) == (1.0, pytest.approx(0.8))


@pytest.mark.parametrize("rewards", [[], [{"name": "nosuch"}], [{"name": "exact"}, {"name": "exact"}]])
def test_a_mixture_that_makes_no_sense_is_refused(rewards: list) -> None:
    with pytest.raises(ValueError, match="reward"):
        Mixture.parse(rewards)


def test_verl_may_pass_its_own_config_objects() -> None:
    rewards = OmegaConf.create([{"name": "regex", "weight": 1.0, "options": {"pattern": r"= (\d+)"}}])

    result = asyncio.run(compute_score("dataset", "2+2 = 4", "4", {"index": 0}, rewards=rewards))

    assert result == {"score": 1.0, "acc": 1.0, "regex": 1.0, "error": 0.0}


def test_every_response_of_a_run_has_the_same_keys() -> None:
    texts = ("", "7", "<think>a</think>7")
    keys = {tuple(asyncio.run(compute_score("d", text, "7", rewards=MIXTURE))) for text in texts}

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

    result = asyncio.run(compute_score("dataset", "7", "7", **function["reward_kwargs"]))

    assert composition.errors == []
    assert function["path"] == f"pkg://{compute_score.__module__}"
    assert function["name"] == compute_score.__name__
    assert set(result) - {"score", "acc", "error"} <= set(REWARDS)


def test_scoring_imports_no_torch() -> None:
    program = (
        "import sys; from trellis_train.rewards.verl_adapter import compute_score;"
        "import asyncio; asyncio.run(compute_score('d', '7', '7')); print('torch' in sys.modules)"
    )

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.strip() == "False"


def test_verl_sees_a_coroutine() -> None:
    assert inspect.iscoroutinefunction(compute_score)


@pytest.mark.parametrize("name", [name for name in reward_kinds() if name not in HANDED_OVER])
def test_every_reward_of_the_catalogue_has_a_scorer(name: str) -> None:
    scorer = build_scorer(
        check_mixture([{"name": name, "options": NEEDED.get(name, {})}])[0][0], ScoringPlace()
    )

    asyncio.run(scorer.load())
    asyncio.run(scorer.close())


@pytest.mark.parametrize("name", HANDED_OVER)
def test_a_reward_that_names_something_says_what_was_not_handed_over(name: str) -> None:
    terms, issues = check_mixture([{"name": name, "options": HANDED_OVER[name]}])

    assert not issues
    with pytest.raises(RewardUnusable, match="is missing from this run's spec"):
        build_scorer(terms[0], ScoringPlace())


def test_a_reward_that_raises_counts_as_nothing_and_is_counted(tmp_path: Path) -> None:
    rewards = [{"name": "exact"}, {"name": "code", "options": {"timeout_s": 1.0, "memory_mb": 64}}]
    mixture = Mixture.parse(rewards, ScoringPlace(folder=tmp_path))

    scored = asyncio.run(mixture.score(Sample(response="no tests here", answer="no tests here")))

    assert scored.as_verl_result() == {"score": 1.0, "acc": 1.0, "exact": 1.0, "code": 0.0, "error": 1.0}
    assert "contains no tests" in (read_last_note(tmp_path) or "")


def test_why_a_reward_cannot_go_on_is_noted_however_many_errors_there_were(tmp_path: Path) -> None:
    notes = ErrorNotes(tmp_path)

    for number in range(100):
        notes.add("judge", f"error {number}")
    notes.add("judge", "its budget is spent", is_final=True)
    notes.add("judge", "its budget is spent", is_final=True)

    lines = (tmp_path / "reward-errors.jsonl").read_text().splitlines()
    assert len(lines) == MAX_NOTES + 1
    assert read_last_note(tmp_path) == "judge: its budget is spent"


def test_a_reward_that_cannot_be_used_says_so_for_every_response() -> None:
    rewards = [{"name": "exact"}, {"name": "python", "options": {"file": "rwf_gone"}}]

    scored = asyncio.run(Mixture.parse(rewards).score(Sample(response="7", answer="7")))

    assert scored.is_unusable
    assert scored.as_verl_result()["error"] == 2.0
    assert "rwf_gone" in scored.errors["python"]


@pytest.mark.parametrize(
    ("errors", "message"),
    [([0.0, 1.0, 1.0, 1.0], "3 of 4 reward calls failed at step 7"), ([0.0] * 9 + [2.0], "cannot be used")],
)
def test_a_run_whose_rewards_fail_ends(errors: list[float], message: str) -> None:
    with pytest.raises(RewardsFailing, match=message):
        judge_errors(errors, step=7)


def test_a_few_errors_are_a_metric() -> None:
    assert judge_errors([1.0, 0.0, 0.0], step=1) == {"reward/errors": 1.0}


def test_the_agent_loop_hands_over_prompt_and_tokens() -> None:
    class Output:
        response_ids = (1, 2, 3)

    row = {"raw_prompt": [{"role": "user", "content": "1+1?"}], "extra_info": {"index": 4}}
    info = describe_sample([Output()], row)
    rewards = [{"name": "length", "options": {"free_length": 2, "unit": "tokens"}}]

    result = asyncio.run(compute_score("d", "2", "2", info, rewards=rewards))

    assert result["length"] == -0.5


@settings(max_examples=100, deadline=None)
@given(response=st.text(), answer=st.text())
def test_no_text_makes_a_pure_mixture_raise(response: str, answer: str) -> None:
    rewards = [{"name": name, "options": OPTIONS.get(name, {})} for name in REWARDS if name != "math"]

    scored = asyncio.run(Mixture.parse(rewards).score(Sample(response=response, answer=answer)))

    assert scored.errors == {}


OPTIONS = {
    "regex": {"pattern": r"(\d+)"},
    "length": {"free_length": 10},
    "json_schema": {"schema": '{"type": "object"}'},
}


def test_a_pattern_that_cannot_be_searched_for_is_told_before_the_run() -> None:
    mixture = Mixture.parse([{"name": "regex", "options": {"pattern": "("}}])

    with pytest.raises(RewardUnusable, match="regex: The pattern is not a valid regular expression"):
        asyncio.run(mixture.load())
