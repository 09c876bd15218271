"""Scoring responses in the agent-loop worker instead of in a process of its own.

verl makes a batch of every response and sends it to a reward worker. With one of each,
that is a process more to start, a batch made and taken apart and a change of threads,
for a function that takes microseconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray

from trellis_train.rewards.verl_adapter import PROMPT_KEY, TOKENS_KEY
from trellis_train.rollout.synchronous_executor import Inline

#: Stands in the list of reward workers for "score it where it is"; the agent-loop worker reads it.
SCORE_IN_WORKER = "score-in-agent-loop-worker"


def can_score_in_worker(config: Any) -> bool:
    """Tell whether the run has one reward worker for one agent-loop worker, and no reward model."""
    return bool(
        config.reward.num_workers == 1
        and config.actor_rollout_ref.rollout.agent.num_workers == 1
        and not config.reward.reward_model.enable
    )


def describe_sample(outputs: Sequence[Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row's ``extra_info`` with the prompt's messages and the response's length in tokens."""
    messages = [dict(message) for message in row.get("raw_prompt", ())]
    described = {PROMPT_KEY: messages, TOKENS_KEY: len(outputs[-1].response_ids)}
    return {**(row.get("extra_info") or {}), **described}


class ResponseView:
    """One response in the place of the ``DataProto`` that verl's reward managers read, not copied."""

    def __init__(self, output: Any, row: Mapping[str, Any]) -> None:
        # Arrays: what is done with them, a sum and a slice, takes tensors ten times as long.
        responses = np.asarray(output.response_ids, dtype=np.int64)
        self.batch = {"responses": responses, "attention_mask": np.ones_like(responses)}
        self.non_tensor_batch = {
            **row,
            # Of the type that an array of verl's has, by which rewards tell it from the row's own columns.
            "__num_turns__": np.int64(output.num_turns),
            "tool_extra_fields": output.extra_fields,
        }

    def __getitem__(self, _: Any) -> "ResponseView":
        """Return this view for any index, since it holds one response."""
        return self


class LocalRewardWorker:
    """Answers ``handle.compute_score.remote(data)`` with verl's reward worker in this process."""

    def __init__(self, worker: Any) -> None:
        self.compute_score = _LocalMethod(worker.compute_score)
        self._manager = manager = worker.reward_manager
        # verl's managers that read no more than a `ResponseView` has.
        self.scores_views = type(manager).__name__ in ("NaiveRewardManager", "DAPORewardManager")
        if self.scores_views and manager.is_async_reward_score:
            manager.loop = Inline()  # what is left to it is the decoding of one response

    async def score(self, output: Any, row: Mapping[str, Any]) -> dict[str, Any]:
        """Score one response with verl's manager, if ``scores_views``."""
        # Not through the worker, which reads its configuration each time to find out that there is no model.
        result: dict[str, Any] = await self._manager.run_single(ResponseView(output, row))
        return result


class _LocalMethod:
    def __init__(self, method: Any) -> None:
        self.remote = method


def without_reward_processes(manager_cls: type[Any]) -> type[Any]:
    """Subclass verl's ``RewardLoopManager`` to start no worker when the agent loop can score by itself.

    Others are started with a class of ours, which notes when they score.
    """

    class RewardLoopManager(manager_cls):
        reward_loop_workers_class: Any

        def _init_reward_loop_workers(self) -> None:
            if can_score_in_worker(self.config):
                self.reward_loop_workers = [SCORE_IN_WORKER]
            else:
                from trellis_train.rollout.reward_worker import TimedRewardWorker

                self.reward_loop_workers_class = ray.remote(TimedRewardWorker)
                super()._init_reward_loop_workers()

    return RewardLoopManager
