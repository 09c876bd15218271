"""The reward function that verl calls (``reward.custom_reward_function``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf

from trellis_train.rewards.mixture import Mixture
from trellis_train.rewards.resources import current_place
from trellis_train.rewards.sample import Sample, plain_row

#: Under these names the agent loop adds to ``extra_info`` what verl does not hand over.
PROMPT_KEY, TOKENS_KEY = "trellis_prompt", "trellis_response_tokens"
#: verl hands over the same object with every call; parsing it each time would cost more than scoring.
_parsed: tuple[object, Mixture] | None = None


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    rewards: Sequence[Mapping[str, Any]] = ({"name": "exact"},),
    **_unused: Any,
) -> dict[str, float]:
    """Score one response; the keys are the same for every response of a run, as verl demands.

    A coroutine, so that a judge or a reward model that is waited for holds nothing up.
    """
    info = extra_info or {}
    row = plain_row(info)
    tokens = row.pop(TOKENS_KEY, None)
    messages = row.pop(PROMPT_KEY, None) or [{"role": "user", "content": str(info.get("question", ""))}]
    sample = Sample(
        response=solution_str,
        answer="" if ground_truth is None else str(ground_truth),
        messages=messages,
        row={**row, "data_source": data_source},
        response_tokens=tokens,
    )
    return (await _mixture(rewards).score(sample)).as_verl_result()


def _mixture(rewards: Sequence[Mapping[str, Any]]) -> Mixture:
    """Return the run's mixture, opened once per process since a process uses only one mixture."""
    global _parsed
    if _parsed is None or _parsed[0] is not rewards:
        plain: Any = OmegaConf.to_container(rewards) if OmegaConf.is_config(rewards) else rewards
        _parsed = (rewards, Mixture.parse(plain, current_place()))
    return _parsed[1]
