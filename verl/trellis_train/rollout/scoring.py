"""Scoring responses in the agent-loop worker instead of in a process of its own.

verl sends every response to a reward worker. With one of each, that is a process
more to start, and a serialised batch there and back for a function that takes
microseconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trellis_train.rewards.verl_adapter import PROMPT_KEY, TOKENS_KEY

#: Stands in the list of reward workers for "score it where it is"; the agent-loop worker reads it.
SCORE_IN_WORKER = "score-in-agent-loop-worker"


def can_score_in_worker(config: Any) -> bool:
    """Whether the run has one reward worker for one agent-loop worker, and no reward model."""
    return bool(
        config.reward.num_workers == 1
        and config.actor_rollout_ref.rollout.agent.num_workers == 1
        and not config.reward.reward_model.enable
    )


def describe_sample(outputs: Sequence[Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The row's ``extra_info`` with the messages of the prompt and the length of the response in tokens."""
    messages = [dict(message) for message in row.get("raw_prompt", ())]
    described = {PROMPT_KEY: messages, TOKENS_KEY: len(outputs[-1].response_ids)}
    return {**(row.get("extra_info") or {}), **described}


def without_reward_processes(manager_cls: type[Any]) -> type[Any]:
    """verl's ``RewardLoopManager`` that starts no worker when the agent loop can score by itself."""

    class RewardLoopManager(manager_cls):
        def _init_reward_loop_workers(self) -> None:
            if can_score_in_worker(self.config):
                self.reward_loop_workers = [SCORE_IN_WORKER]
            else:
                super()._init_reward_loop_workers()

    return RewardLoopManager
