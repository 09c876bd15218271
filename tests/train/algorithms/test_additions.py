"""What is added to verl for single algorithms: ReMax's greedy responses, DAPO's limits and its penalty."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from trellis_train.hooks.algorithms import mixins_for
from trellis_train.hooks.dynamic_sampling import BoundedSampling, SamplingExhausted
from trellis_train.hooks.remax import GreedyBaseline, baselines_of, take_baselines
from trellis_train.hooks.reward_errors import RewardsFailing
from trellis_train.rewards.error_notes import ErrorNotes

from . import references as paper
from .conftest import configure


class Queue:
    """Holds the scores of responses, as verl's TransferQueue does."""

    def __init__(self, scores: dict[str, list[float]]) -> None:
        self.scores = scores

    def kv_batch_get(self, *, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
        assert (partition_id, select_fields) == ("train", ["rm_scores"])
        tensors = [torch.tensor(self.scores[key]) for key in keys]
        return {"rm_scores": torch.nested.as_nested_tensor(tensors, layout=torch.jagged)}

    def kv_clear(self, *, keys: list[str], partition_id: str) -> None:
        assert partition_id == "train"
        for key in keys:
            del self.scores[key]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    import transfer_queue

    queue = Queue(
        {
            "1-0_0_0": [0.0, 1.0],
            "1-0_1_0": [0.0],
            "1-1_0_0": [0.0, 0.0],
            "1-1_1_0": [1.0],
            "1-0-greedy_0_0": [0.0, 0.0, 0.5],
            "1-1-greedy_0_0": [1.0],
        }
    )
    monkeypatch.setattr(transfer_queue, "kv_batch_get", queue.kv_batch_get)
    monkeypatch.setattr(transfer_queue, "kv_clear", queue.kv_clear)
    return queue


def batch_of(keys: list[str]) -> Any:
    from transfer_queue import KVBatchMeta

    return KVBatchMeta(partition_id="train", keys=keys, tags=[{"key": key} for key in keys])


def test_only_algorithms_that_need_something_get_it() -> None:
    assert mixins_for(configure("remax")) == (GreedyBaseline,)
    assert mixins_for(configure("dapo")) == (BoundedSampling,)
    assert mixins_for(configure("grpo")) == ()


def test_greedy_responses_are_scored_and_leave_the_batch(queue: Queue) -> None:
    batch, baselines = take_baselines(batch_of(list(queue.scores)))

    assert baselines == {"1-0": 0.5, "1-1": 1.0}
    assert batch.keys == ["1-0_0_0", "1-0_1_0", "1-1_0_0", "1-1_1_0"]
    assert [tag["key"] for tag in batch.tags] == batch.keys
    assert sorted(queue.scores) == batch.keys


def test_a_prompt_without_its_greedy_response_is_left_out(queue: Queue) -> None:
    del queue.scores["1-1-greedy_0_0"]

    batch, baselines = take_baselines(batch_of(list(queue.scores)))

    assert baselines == {"1-0": 0.5}
    assert batch.keys == ["1-0_0_0", "1-0_1_0"]
    assert sorted(queue.scores) == batch.keys


def test_a_step_without_greedy_responses_ends_the_run(queue: Queue) -> None:
    with pytest.raises(RuntimeError, match="greedy"):
        take_baselines(batch_of(["1-0_0_0", "1-1_0_0"]))


def test_padding_has_no_baseline_and_a_response_must_have_one() -> None:
    assert baselines_of(["a", "pad7"], {"a": 0.5}, has_tokens=[True, False]) == [0.5, 0.0]
    with pytest.raises(KeyError):
        baselines_of(["a", "b"], {"a": 0.5}, has_tokens=[True, True])


class Fetching:
    """Stands for verl's trainer, which fetches the prompts."""

    def _next_train_batch(self, num_prompts: int | None = None) -> int | None:
        return num_prompts


class Sampling(BoundedSampling, Fetching):
    def __init__(self, limit: int) -> None:
        self.global_steps = 1
        groups = {"max_num_gen_batches": limit, "metric": "acc"}
        self.config = OmegaConf.create(
            {"data": {"train_batch_size": 4}, "algorithm": {"filter_groups": groups}}
        )


def test_a_step_whose_reward_cannot_be_used_ends_at_once_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_ATTEMPT_DIR", str(tmp_path))
    trainer, notes = Sampling(limit=0), ErrorNotes(tmp_path)
    trainer._next_train_batch()
    notes.add("judge", "no grade")
    trainer._next_train_batch(1)
    notes.add("judge", "its budget is spent", is_final=True)

    with pytest.raises(RewardsFailing, match=r"step 1\. Last: judge: its budget is spent"):
        trainer._next_train_batch(1)


def test_giving_up_names_what_rewards_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_ATTEMPT_DIR", str(tmp_path))
    ErrorNotes(tmp_path).add("python", "ValueError: no number")
    trainer = Sampling(limit=1)
    trainer._next_train_batch()

    with pytest.raises(SamplingExhausted, match=r"Rewards failed\. Last: python: ValueError: no number"):
        trainer._next_train_batch(1)


def test_a_step_that_cannot_be_filled_gives_up() -> None:
    trainer = Sampling(limit=3)
    trainer._next_train_batch()
    for _ in range(8):
        trainer._next_train_batch(1)

    with pytest.raises(SamplingExhausted, match=r"3 batches of 4 prompts.*'acc'"):
        trainer._next_train_batch(1)


def test_each_step_has_the_whole_limit() -> None:
    trainer = Sampling(limit=2)
    for step in (1, 2, 3):
        trainer.global_steps = step
        trainer._next_train_batch()
        trainer._next_train_batch(4)


def test_without_a_limit_sampling_goes_on() -> None:
    trainer = Sampling(limit=0)
    for _ in range(50):
        trainer._next_train_batch()


@pytest.mark.parametrize("length", [1, 8, 9, 12, 16])
def test_dapo_penalises_long_responses_as_its_paper_does(length: int) -> None:
    from verl.experimental.reward_loop.reward_manager.dapo import DAPORewardManager
    from verl.protocol import DataProto

    config = configure("dapo", params={"overlong_penalty_factor": 0.5})
    tokenizer = SimpleNamespace(decode=lambda ids, **_: "7")
    data = DataProto.from_dict(
        tensors={
            "responses": torch.ones(1, length, dtype=torch.int64),
            "attention_mask": torch.ones(1, length, dtype=torch.int64),
        },
        non_tensors={"data_source": ["dataset"], "reward_model": [{"ground_truth": "7"}], "extra_info": [{}]},
    )

    async def score() -> dict[str, Any]:
        manager = DAPORewardManager(config, tokenizer, lambda **_: {"score": 1.0, "acc": 1.0})
        result: dict[str, Any] = await manager.run_single(data)
        return result

    result = asyncio.run(score())

    expected = paper.overlong_penalty(length, longest=16, buffer=8, factor=0.5)
    assert float(result["reward_score"]) == pytest.approx(1.0 + expected)
    assert float(result["reward_extra_info"]["overlong_reward"]) == pytest.approx(expected)
    assert bool(result["reward_extra_info"]["overlong"]) == (expected < 0)
    assert result["reward_extra_info"]["score"] == 1.0
