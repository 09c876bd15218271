"""Values of a function beside their gradient, to compare two ways of computing them."""

from collections.abc import Callable

import torch
from torch import Tensor


def with_gradient(function: Callable[..., Tensor], logits: Tensor, *others: Tensor) -> list[Tensor]:
    """Compute the values, and the gradient of ``logits`` with each value weighted by its index."""
    logits = logits.clone().requires_grad_()
    values = function(logits, *others)
    (values * torch.arange(values.numel()).view_as(values)).sum().backward()
    assert logits.grad is not None
    return [values.detach(), logits.grad]
