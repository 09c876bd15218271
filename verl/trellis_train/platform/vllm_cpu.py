"""The ``vllm.general_plugins`` entry point: what vLLM does otherwise on a CPU that a trainer shares.

vLLM packs linear weights for its CPU kernels after loading and drops the original;
a trainer that sends new weights would then write into nothing. And it compiles one
comparison and sum at the first step of every engine, which takes seconds.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any

from trellis_train.platform.activation import is_cpu_platform

if TYPE_CHECKING:
    from torch import Tensor

SAMPLER = "vllm.v1.sample.sampler"
RANKS = "batched_count_greater_than"


def register() -> None:
    """Make every linear layer multiply by its live weight, and ranks of tokens be counted without a compiler.

    Once per process, on a CPU only.
    """
    if not is_cpu_platform():
        return
    import vllm.model_executor.layers.utils as layers

    from trellis_train.platform.imports import patch_after_import, require

    require(layers, "dispatch_cpu_unquantized_gemm")
    layers.dispatch_cpu_unquantized_gemm = use_live_weight
    patch_after_import(SAMPLER, count_ranks_eagerly)


def use_live_weight(layer: Any, remove_weight: bool = True) -> None:  # noqa: ARG001
    """Replaces ``dispatch_cpu_unquantized_gemm``: no packing, so a weight sync takes effect at once."""
    from torch.nn.functional import linear

    # `weight` is what vLLM held when the layer was built; the live one is the layer's attribute.
    def cpu_linear(x: "Tensor", weight: "Tensor", bias: "Tensor | None") -> "Tensor":  # noqa: ARG001
        return linear(x, layer.weight, bias)

    layer.cpu_linear = cpu_linear


def count_ranks_eagerly(module: ModuleType) -> None:
    """Replace the compiled count: it takes microseconds, compiling it for each shape seconds."""
    from trellis_train.platform.imports import require

    require(module, RANKS)
    setattr(module, RANKS, count_at_least)


def count_at_least(x: "Tensor", values: "Tensor") -> "Tensor":
    """How many elements of each row of ``x`` (rows, elements) are at least that of ``values`` (rows, 1)."""
    return (x >= values).sum(-1)
