"""What is added to verl for single algorithms: ReMax's greedy responses, DAPO's limits and its penalty."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from trellis_train.hooks.algorithms import mixins_for
from trellis_train.hooks.dynamic_sampling import BoundedSampling, PolicySolved, SamplingExhausted
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
    """Stands for verl's trainer: it fetches prompts, and its steps end when they are full."""

    def _next_train_batch(self, num_prompts: int | None = None) -> int | None:
        return num_prompts

    def _build_replay_buffer(self) -> Any:
        from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

        nothing = OmegaConf.create({})
        return ReplayBuffer(
            "sync", nothing, None, "drop", nothing, filter_groups_metric="acc", refill_fn=print
        )

    def fit(self) -> None:
        for self.global_steps in range(1, 6):
            self._next_train_batch()
            for _ in range(20 if self.global_steps == 5 else 0):
                self._next_train_batch(1)


class Sampling(BoundedSampling, Fetching):
    def __init__(self, limit: int, folder: Path = Path("/nowhere")) -> None:
        self.global_steps, self.total_training_steps = 1, 9
        groups = {"max_num_gen_batches": limit, "metric": "acc"}
        self.config = OmegaConf.create(
            {
                "data": {"train_batch_size": 4},
                "algorithm": {"filter_groups": groups},
                "trainer": {"default_local_dir": str(folder)},
            }
        )
        self.calls: list[Any] = []
        self.replay_buffer = self._build_replay_buffer()

    def judge(self, *values: float, differing: int = 0) -> None:
        """Have groups of the step judged: alike with these values, and so many that differ."""
        uids = {f"1-{number}" for number in range(len(values))}
        self.replay_buffer.finished_keys["train"] = {f"2-{number}" for number in range(differing)}
        self.replay_buffer._clear_groups = lambda *_: None
        self.replay_buffer._evict_terminal_groups(1, "train", (set(), uids, set(), Counter(values)))

    def on_sample_end(self) -> None:
        self.calls.append("engine asleep")

    def _save_checkpoint(self) -> None:
        self.calls.append(self.global_steps)

    def _shutdown_dump_executor(self) -> None:
        self.calls.append("over")


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


def test_a_policy_that_solves_its_prompts_ends_with_a_checkpoint_of_the_last_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = Sampling(limit=2, folder=tmp_path)
    fetch = trainer._next_train_batch

    def judge_and_fetch(num_prompts: int | None = None) -> Any:
        if num_prompts == 1:
            trainer.judge(1.0)
        return fetch(num_prompts)

    trainer._next_train_batch = judge_and_fetch  # type: ignore[method-assign]
    trainer.fit()

    assert trainer.calls == ["engine asleep", 4, "over"]
    assert (trainer.global_steps, trainer.total_training_steps, trainer._planned_steps) == (4, 4, 9)
    said = capsys.readouterr().out
    assert said.startswith("PolicySolved: The policy solves nearly every sampled prompt: step 5 ")
    assert "100 % have only right responses, 0 % only wrong ones ('acc')" in said


def test_a_checkpoint_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "global_step_4").mkdir()
    trainer = Sampling(limit=1, folder=tmp_path)
    trainer.global_steps = 5

    trainer._end_solved()

    assert trainer.calls == ["engine asleep", "over"]


@pytest.mark.parametrize(
    ("alike", "differing", "error", "shares"),
    [
        ([1.0] * 10, 0, PolicySolved, "of 10 groups, 100 % have only right responses, 0 % only wrong ones"),
        ([1.0] * 9, 1, PolicySolved, "of 10 groups, 90 %"),
        ([1.0] * 8 + [0.0], 1, SamplingExhausted, "80 % have only right responses, 10 % only wrong ones"),
        ([0.0] * 10, 0, SamplingExhausted, "0 % have only right responses, 100 % only wrong ones"),
        ([], 0, SamplingExhausted, "of 0 groups"),
    ],
)
def test_a_step_that_cannot_be_filled_says_whether_prompts_are_solved(
    alike: list[float], differing: int, error: type[Exception], shares: str
) -> None:
    trainer = Sampling(limit=1)
    trainer.global_steps = 5
    trainer._next_train_batch()
    trainer.judge(*alike, differing=differing)

    with pytest.raises(error, match=re.escape(shares)):
        trainer._next_train_batch(1)


@pytest.mark.parametrize(("metric", "step"), [("score", 5), ("acc", 1)])
def test_right_groups_end_no_run_by_a_sum_of_rewards_or_before_the_first_step(metric: str, step: int) -> None:
    trainer = Sampling(limit=1)
    trainer.config.algorithm.filter_groups.metric = metric
    trainer.global_steps = step
    trainer._next_train_batch()
    trainer.judge(*[1.0] * 10, differing=0)

    with pytest.raises(SamplingExhausted, match="100 % have only right responses"):
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
