"""The entropy of logits with a gradient only where one is asked for.

verl computes the entropy of every token for its metrics, and takes its gradient with a coefficient that
is zero in most recipes: all of the softmax's backward pass for nothing.
"""

from typing import Any

import torch
from torch import Tensor

from trellis_train.cpu.token_log_probs import rows_at_a_time


def entropy(logits: Tensor) -> Tensor:
    """Compute Shannon's entropy in nats of each distribution: (..., vocabulary) -> (...)."""
    rows = logits.reshape(-1, logits.shape[-1])
    found: Tensor = _Entropy.apply(rows)
    return found.view(logits.shape[:-1])


class _Entropy(torch.autograd.Function):
    """Of rows, some of them at a time; what the backward pass needs is computed again if it is needed."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return torch.cat([_entropy_of(part) for part in rows.split(rows_at_a_time(rows.shape[-1]))])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor | None:
        if not gradient.any():
            return None
        (rows,) = ctx.saved_tensors
        size = rows_at_a_time(rows.shape[-1])
        parts = zip(rows.split(size), gradient.split(size), strict=True)
        return torch.cat([_gradient_of(part) * weight.unsqueeze(-1) for part, weight in parts])


def _entropy_of(rows: Tensor) -> Tensor:
    """Compute the entropy: log-sum-exp of the logits minus their mean under the softmax."""
    return rows.logsumexp(-1) - (rows.softmax(-1) * rows).sum(-1)


def _gradient_of(rows: Tensor) -> Tensor:
    """Compute the entropy's derivative by the logit of a token of probability p: -p (log p + H)."""
    log_probs = rows.log_softmax(-1)
    probabilities = log_probs.exp()
    entropies = -(probabilities * log_probs).sum(-1, keepdim=True)
    return -probabilities * (log_probs + entropies)
