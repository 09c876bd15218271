"""An estimator without a baseline: a response's reward is the advantage of each of its tokens.

This is REINFORCE as Williams wrote it (1992). verl has none: all of its estimators compare or whiten.
"""

from typing import Any


def estimate_advantages(token_level_rewards: Any, response_mask: Any, **_unused: Any) -> tuple[Any, Any]:
    """Return advantages and returns, both (responses, tokens): the reward, 0 outside of the response."""
    import torch

    with torch.no_grad():
        result = token_level_rewards.sum(dim=-1, keepdim=True) * response_mask
    return result, result
