"""The ``vllm.general_plugins`` entry point: keeps vLLM's CPU weights replaceable.

vLLM packs linear weights for its CPU kernels after loading and drops the original;
a trainer that sends new weights would then write into nothing.
"""

from typing import TYPE_CHECKING, Any

from trellis_train.platform.activation import is_cpu_platform

if TYPE_CHECKING:
    from torch import Tensor


def register() -> None:
    """Make every linear layer multiply by its live weight (once per process, on a CPU only)."""
    if not is_cpu_platform():
        return
    import vllm.model_executor.layers.utils as layers

    from trellis_train.platform.imports import require

    require(layers, "dispatch_cpu_unquantized_gemm")
    layers.dispatch_cpu_unquantized_gemm = use_live_weight


def use_live_weight(layer: Any, remove_weight: bool = True) -> None:  # noqa: ARG001
    """Replaces ``dispatch_cpu_unquantized_gemm``: no packing, so a weight sync takes effect at once."""
    from torch.nn.functional import linear

    # `weight` is what vLLM held when the layer was built; the live one is the layer's attribute.
    def cpu_linear(x: "Tensor", weight: "Tensor", bias: "Tensor | None") -> "Tensor":  # noqa: ARG001
        return linear(x, layer.weight, bias)

    layer.cpu_linear = cpu_linear
