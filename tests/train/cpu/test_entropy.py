"""The entropy of logits: verl's values and gradients, and no gradient where none is asked for."""

from typing import Any

import pytest
import torch
from trellis_testing.gradients import with_gradient
from trellis_train.cpu import token_log_probs
from trellis_train.cpu.entropy import entropy


def original() -> Any:
    from verl.utils import torch_functional

    return torch_functional.entropy_from_logits


@pytest.mark.parametrize("shape", [(37,), (5, 7)])
@pytest.mark.parametrize("rows_at_a_time", [1, 10, 1000])
def test_values_and_gradients_are_those_of_verl(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], rows_at_a_time: int
) -> None:
    vocabulary = 259
    monkeypatch.setattr(token_log_probs, "MAX_ELEMENTS", rows_at_a_time * vocabulary)
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(*shape, vocabulary, generator=generator, dtype=torch.float64)

    ours, theirs = (with_gradient(function, logits) for function in (entropy, original()))

    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their)


def test_a_coefficient_of_zero_takes_no_backward_pass() -> None:
    logits = torch.randn(3, 5, requires_grad=True)

    (0.0 * entropy(logits).sum()).backward()

    assert logits.grad is None
