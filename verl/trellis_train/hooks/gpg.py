"""GPG's advantages as its paper has them (https://arxiv.org/abs/2504.02546, equations 5 to 7).

verl scales by all responses over those with a reward other than 0. The paper scales by
all responses over those of groups that give a gradient: a group whose rewards are all
equal gives none, whatever they are.
"""

from collections.abc import Sequence
from typing import Any


def estimate_advantages(
    token_level_rewards: Any, response_mask: Any, index: Sequence[str], **_unused: Any
) -> tuple[Any, Any]:
    """Subtract group means from rewards; scale so groups without a gradient do not shrink the step."""
    import torch

    with torch.no_grad():
        scores = token_level_rewards.sum(dim=-1)
        # Rows of padding have no tokens, and must not count as responses.
        is_real = response_mask.any(dim=-1)
        groups: dict[str, list[int]] = {}
        for row, prompt in enumerate(index):
            if is_real[row]:
                groups.setdefault(prompt, []).append(row)
        advantages, teaching = torch.zeros_like(scores), 0
        for rows in groups.values():
            advantages[rows] = scores[rows] - scores[rows].mean()
            # Not by the advantages: the mean of equal floats may be off by a rounding.
            teaching += len(rows) if bool((scores[rows] != scores[rows[0]]).any()) else 0
        scaled = advantages * (int(is_real.sum()) / max(1, teaching))
        result = scaled.unsqueeze(-1) * response_mask
    return result, result
