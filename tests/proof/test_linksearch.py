"""Link Search in a real run: a taught model plays episodes on vLLM, learns from them, and each is logged."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_testing.agent_starter import teach
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_train.agents.environments import make
from trellis_train.agents.linksearch.demonstrations import phrases, write_demonstrations
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.reward import compute_reward
from trellis_train.agents.linksearch.rubric import Rubric
from trellis_train.agents.starter import conversation_texts, make_tokenizer, write_model

pytestmark = [pytest.mark.train, pytest.mark.timeout(600), pytest.mark.proves("linksearch")]

PARAMETERS = {"profiles": 60, "train": 24, "eval": 5, "seed": 1, "most_constraints": 1}
QUERIES, ROLLOUTS, TURNS, STEPS = 4, 4, 4, 2
PARAMS: dict[str, Any] = {
    "max_turns": TURNS,
    "detailed_logging": True,
    "batch_size": QUERIES,
    "mini_batch_size": QUERIES,
    "micro_batch_size": 8,
    "group_size": ROLLOUTS,
    "total_steps": STEPS,
    "validate_every": STEPS,
    "validate_before": True,
    "save_every": 0,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, join_ray: Callable[[], dict[str, str]]) -> EngineRun:
    """Two steps of 16 episodes, with a validation before and after."""
    folder = tmp_path_factory.mktemp("linksearch")
    environment = folder / "environment"
    make("linksearch", environment, PARAMETERS)
    model = make_taught_model(folder, environment)
    train, evaluation = (
        Rows.from_json_lines(environment / "rows" / f"{split}.jsonl", DataFormat.VERL_RL)
        for split in ("train", "eval")
    )
    job = compose_job(
        folder / "job",
        recipe="linksearch",
        model=model,
        rows=train,
        validation=evaluation,
        params=PARAMS,
        environment=environment,
    )
    return run_engine(job, environment=join_ray())


def make_taught_model(folder: Path, environment: Path) -> Path:
    options = Options(max_turns=TURNS)
    demonstrations = folder / "demonstrations.jsonl"
    write_demonstrations(demonstrations, [environment], options, [environment / "eval.jsonl"], seed=0)
    rows = [json.loads(line) for line in demonstrations.read_text().splitlines()]
    words = phrases(options, environment / "profiles.db")
    tokenizer = make_tokenizer(conversation_texts(rows), phrases=words, vocabulary=700)
    write_model(folder / "untaught", tokenizer, seed=0)
    teach(folder / "untaught", rows, folder / "model", steps=120)
    return folder / "model"


@pytest.fixture(scope="module")
def logs(run: EngineRun) -> dict[int, list[dict[str, Any]]]:
    """The log of every rollout by step; 0 is the validation before training."""
    root = Path(run.spec.checkpoint_dir).parent / "rollout_logs"
    found: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(root.glob("step_*/query_*/rollout_*.json")):
        found.setdefault(int(path.parts[-3].removeprefix("step_")), []).append(json.loads(path.read_text()))
    return found


def of_split(logs: list[dict[str, Any]], split: str) -> list[dict[str, Any]]:
    return [log for log in logs if log["split"] == split]


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
