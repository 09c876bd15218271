"""How many threads a rollout engine on a CPU computes with: as many as its model is worth.

Threads wait for each other after every operation. A small model's operations take microseconds, and whatever
else runs on one of the cores - the server that hands out the tokens does - holds all of them up each time: on
two cores 256 responses of 64 tokens by a model of 0.8 M parameters took 2.9 s of a training step with two
threads and 2.6 s with one. From some millions of parameters on the second thread pays.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

PARAMETERS_PER_THREAD = 8_000_000


def count_threads(parameters: int, most: int) -> int:
    """Choose a number of threads from 1 to ``most`` (the threads that the rollout engine was given)."""
    return max(1, min(most, -(-parameters // PARAMETERS_PER_THREAD)))


def fitting(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``load_model`` so that torch then uses the number of threads that suits ``self.model``."""

    @wraps(load)
    def load_and_fit(self: Any, *args: Any, **kwargs: Any) -> None:
        import torch

        load(self, *args, **kwargs)
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        # vLLM has put a function in place of torch.set_num_threads that does nothing but warn.
        torch._C.set_num_threads(count_threads(parameters, torch.get_num_threads()))

    return load_and_fit
