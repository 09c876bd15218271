"""verl's reward worker, which notes when it scores."""

from typing import Any

from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

from trellis_train.hooks.process_spans import SPANS


class TimedRewardWorker(RewardLoopWorker):
    """Scores responses in a process of its own; the trainer takes its spans."""

    async def compute_score(self, data: Any) -> dict[str, Any]:
        with SPANS.measure("reward"):
            result: dict[str, Any] = await super().compute_score(data)
        return result
