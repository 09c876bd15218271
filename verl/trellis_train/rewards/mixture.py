"""A weighted mixture of rewards, and the parts it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis_train.rewards.functions import REWARDS


@dataclass(frozen=True)
class WeightedReward:
    """One reward of a mixture."""

    name: str
    weight: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in REWARDS:
            raise ValueError(f"There is no reward '{self.name}'. Rewards: {', '.join(sorted(REWARDS))}.")


@dataclass(frozen=True)
class Mixture:
    """Rewards whose weighted sum is the score; the first one decides whether a response is correct."""

    rewards: tuple[WeightedReward, ...]

    def __post_init__(self) -> None:
        if not self.rewards:
            raise ValueError("A mixture needs at least one reward.")
        names = [reward.name for reward in self.rewards]
        if len(names) != len(set(names)):
            raise ValueError(f"A reward stands twice in the mixture: {', '.join(names)}.")

    @classmethod
    def parse(cls, rewards: Sequence[Mapping[str, Any]]) -> "Mixture":
        """From ``[{"name": "math", "weight": 0.9, "options": {}}, ...]``."""
        return cls(tuple(WeightedReward(**reward) for reward in rewards))

    def score(self, response: str, truth: str) -> dict[str, float]:
        """``score``, ``acc`` (1 where the first reward is full, else 0) and every part unweighted."""
        parts = {
            reward.name: REWARDS[reward.name](response, truth, **reward.options) for reward in self.rewards
        }
        total = sum(reward.weight * parts[reward.name] for reward in self.rewards)
        return {"score": total, "acc": float(parts[self.rewards[0].name] >= 1.0), **parts}
