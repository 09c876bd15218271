"""Link Search in a real run: a taught model plays episodes on vLLM, learns from them, and each is logged."""

from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
from trellis_testing.engine_runs import EngineRun
from trellis_train.agents.linksearch.reward import compute_reward
from trellis_train.agents.linksearch.rubric import Rubric

from .linksearch import QUERIES, ROLLOUTS, Searcher, of_split, read_logs

pytestmark = [pytest.mark.training, pytest.mark.timeout(600), pytest.mark.proves("linksearch")]

STEPS = 2


@pytest.fixture(scope="module")
def run(
    searcher: Searcher, tmp_path_factory: pytest.TempPathFactory, join_ray: Callable[[], dict[str, str]]
) -> EngineRun:
    """Two steps of 16 episodes, with a validation before and after."""
    return searcher.train(
        tmp_path_factory.mktemp("linksearch") / "job",
        join_ray(),
        validation=searcher.rows("eval"),
        total_steps=STEPS,
        validate_every=STEPS,
        validate_before=True,
    )


@pytest.fixture(scope="module")
def logs(run: EngineRun) -> dict[int, list[dict[str, Any]]]:
    return read_logs(run)


def test_there_is_a_log_for_every_query_and_rollout(logs: dict[int, list[dict[str, Any]]]) -> None:
    # A11
    counts = {
        step: (len(of_split(each, "train")), len(of_split(each, "eval"))) for step, each in logs.items()
    }

    assert counts == {0: (0, 5), 1: (QUERIES * ROLLOUTS, 0), 2: (QUERIES * ROLLOUTS, 5)}
    for step in (1, 2):
        trained = of_split(logs[step], "train")
        assert len({(log["query_id"], log["rollout"]) for log in trained}) == QUERIES * ROLLOUTS


def test_every_reward_recomputes_from_its_logged_rubric(logs: dict[int, list[dict[str, Any]]]) -> None:
    # A11
    rewards = [
        (log["reward"], compute_reward(Rubric(**log["rubric"])).total)
        for each in logs.values()
        for log in each
    ]

    assert all(logged == computed for logged, computed in rewards)
    assert len({logged for logged, _ in rewards}) > 1


def test_episodes_have_turns_and_only_what_was_sampled_is_learned_from(
    logs: dict[int, list[dict[str, Any]]],
) -> None:
    # A4 in a run
    episodes = [log for each in logs.values() for log in each]

    assert max(log["rubric"]["turns"] for log in episodes) >= 2
    assert any(log["stop_reason"] == "answered" for log in episodes)
    for log in episodes:
        sampled = sum(turn["tokens"] for turn in log["turns"] if turn["role"] == "assistant")
        assert log["mask"]["ones"] == log["mask"]["sampled"] == sampled
        assert all(turn["is_trained"] == (turn["role"] == "assistant") for turn in log["turns"])


def test_metrics_agree_with_the_logs(run: EngineRun, logs: dict[int, list[dict[str, Any]]]) -> None:
    for step in range(1, STEPS + 1):
        metrics, trained = run.metrics(step), of_split(logs[step], "train")
        assert metrics["train/avg_reward"] == pytest.approx(fmean(log["reward"] for log in trained), abs=1e-5)
        assert metrics["train/accuracy"] == fmean(log["rubric"]["acc"] for log in trained)
        assert metrics["agent/turns/mean"] == fmean(log["rubric"]["turns"] for log in trained)
        assert metrics["agent/calls/mean"] == fmean(len(log["tool_calls"]) for log in trained)
        assert {"train/loss", "train/policy_loss", "agent/episode_s/mean"} <= set(metrics)
    before = of_split(logs[0], "eval")
    assert run.metrics(0)["baseline/accuracy"] == fmean(log["rubric"]["acc"] for log in before)
    assert run.metrics(0)["baseline/avg_score"] == pytest.approx(
        fmean(log["rubric"]["score"] for log in before)
    )
    assert {"eval/accuracy", "eval/avg_turns", "eval/avg_hits"} <= set(run.metrics(STEPS))


def test_sampler_and_trainer_agree_on_the_probabilities_of_sampled_tokens(run: EngineRun) -> None:
    # A4: were the log-probabilities shifted by a token, these would be nowhere near each other.
    for step in range(1, STEPS + 1):
        assert run.metrics(step)["training/rollout_probs_diff_max"] < 0.02


def test_rollouts_are_told_turn_by_turn(run: EngineRun, logs: dict[int, list[dict[str, Any]]]) -> None:
    (event,) = [each for each in run.events("rollouts") if each["step"] == 1 and each["split"] == "train"]

    assert len(event["rollouts"]) == QUERIES * ROLLOUTS
    told = sorted(each["trajectory"]["stop_reason"] for each in event["rollouts"])
    assert told == sorted(log["stop_reason"] for log in of_split(logs[1], "train"))
    for rollout in event["rollouts"]:
        assert [turn["role"] for turn in rollout["trajectory"]["turns"][:3]] == [
            "system",
            "user",
            "assistant",
        ]
        assert {"acc", "turns", "process", "penalty"} <= set(rollout["reward_parts"])
