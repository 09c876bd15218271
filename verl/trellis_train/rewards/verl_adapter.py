"""The reward function that verl calls (``reward.custom_reward_function``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf

from trellis_train.rewards.mixture import Mixture

#: verl hands over the same object with every call; parsing it each time would cost more than scoring.
_parsed: tuple[object, Mixture] | None = None


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    rewards: Sequence[Mapping[str, Any]] = ({"name": "exact"},),
    **_unused: Any,
) -> dict[str, float]:
    """Score one response; the keys are the same for every response of a run, as verl demands."""
    del data_source, extra_info
    return _mixture(rewards).score(solution_str, str(ground_truth))


def _mixture(rewards: Sequence[Mapping[str, Any]]) -> Mixture:
    global _parsed
    if _parsed is None or _parsed[0] is not rewards:
        plain: Any = OmegaConf.to_container(rewards) if OmegaConf.is_config(rewards) else rewards
        _parsed = (rewards, Mixture.parse(plain))
    return _parsed[1]
