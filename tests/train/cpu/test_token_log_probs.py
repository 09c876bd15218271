"""Log-probabilities of tokens, some rows at a time: verl's values and gradients, bit for bit."""

import inspect
from typing import Any

import pytest
import torch
from trellis_testing.gradients import with_gradient
from trellis_train.cpu import token_log_probs as patched
from trellis_train.cpu.token_log_probs import token_log_probs


def original() -> Any:
    from verl.utils import torch_functional

    return torch_functional.logprobs_from_logits_v2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(37,), (5, 7)])
@pytest.mark.parametrize("rows_at_a_time", [1, 10, 1000])
def test_values_and_gradients_are_those_of_verl(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, shape: tuple[int, ...], rows_at_a_time: int
) -> None:
    vocabulary = 259
    monkeypatch.setattr(patched, "MAX_ELEMENTS", rows_at_a_time * vocabulary)
    generator = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(*shape, vocabulary, generator=generator)).to(dtype)
    labels = torch.randint(vocabulary, shape, generator=generator)

    ours, theirs = (with_gradient(function, logits, labels) for function in (token_log_probs, original()))

    assert all(torch.equal(our, their) for our, their in zip(ours, theirs, strict=True))


def test_a_row_larger_than_the_limit_is_worked_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patched, "MAX_ELEMENTS", 1)
    logits = torch.randn(3, 5)

    found = token_log_probs(logits, torch.tensor([0, 1, 2]))

    assert torch.allclose(found, logits.log_softmax(-1).diagonal())


def test_verl_still_takes_one_row_at_a_time() -> None:
    source = inspect.getsource(original())

    assert "torch.logsumexp(logit, dim=-1) for logit in logits" in source
