"""Seeded sampling on a CPU with one random number for a token, not one for each token of the vocabulary.

vLLM draws an exponential number for every probability and takes the token whose quotient is largest: for 256
responses and 259 tokens a sixth of a small model's step. The token at which the sum of probabilities passes
one uniform number has the same distribution (inverse transform sampling: L. Devroye, Non-Uniform Random
Variate Generation, 1986, III.2).
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Generator, Tensor


def inverting(sample: Callable[..., Any], restrict: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``forward_cpu``: (logits, generators by row, k, p) -> (tokens, values of ``logprobs_mode``).

    ``restrict`` is vLLM's ``apply_top_k_top_p``. So is sampled wherever every request has a seed.
    """

    @wraps(sample)
    def sample_seeded(self: Any, logits: Any, generators: Any, k: Any, p: Any) -> Any:
        if len(generators) != logits.shape[0]:
            return sample(self, logits, generators, k, p)
        import torch

        logits = restrict(logits, k, p)
        found = None
        if self.logprobs_mode == "processed_logits":
            found = logits
        elif self.logprobs_mode == "processed_logprobs":
            found = logits.log_softmax(dim=-1, dtype=torch.float32)
        return invert(logits.softmax(dim=-1, dtype=torch.float32), draw(generators)), found

    return sample_seeded


def draw(generators: "Mapping[int, Generator]") -> "Tensor":
    """Draw one number of [0, 1) for each row, from the row's own generator: (rows,), double precision."""
    import torch

    numbers = torch.empty(len(generators), dtype=torch.float64)
    for row, number in enumerate(numbers.unbind()):
        number.uniform_(generator=generators[row])
    return numbers


def invert(probabilities: "Tensor", numbers: "Tensor") -> "Tensor":
    """Return each row's token at which the cumulative ``probabilities`` pass its number.

    Shapes: (rows, vocabulary) and (rows,) -> (rows,).
    """
    import torch

    sums = probabilities.cumsum(dim=-1, dtype=torch.float64)
    whole = sums[:, -1:]
    # Below the whole sum, even where rounding makes them equal: a token without probability is never passed.
    bounds = torch.minimum(numbers.unsqueeze(-1) * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(sums, bounds, right=True).squeeze(-1)
