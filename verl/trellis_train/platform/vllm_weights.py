"""Weights of a sampler that a trainer sends anew, in the form that a CPU multiplies by fastest.

vLLM packs linear weights for oneDNN after loading and drops the original; a trainer that sends new weights
would then write into nothing. Here the original stays, and a large weight is packed anew at its first use
after new ones came. What is not packed has to be each time it is multiplied by: on two cores, 32 rows times
512 x 3200 take 3.3 ms with the weight as it is and 1.6 ms with the packed one, which takes 2 ms to make.
"""

import os
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from trellis_train.platform.imports import require

if TYPE_CHECKING:
    from torch import Tensor

DISPATCH = "dispatch_cpu_unquantized_gemm"
LOAD_MODEL, LOAD_WEIGHTS = "load_model", "load_weights"
#: Set where no trainer sends weights: the engine may lay them out for its kernels and drop the original.
FIXED_WEIGHTS_VARIABLE = "TRELLIS_FIXED_WEIGHTS"
#: A smaller weight stays in the cache of a core, and is multiplied by as fast as it is.
LEAST_PACKED_BYTES = 3 * 1024**2
#: Row counts for which oneDNN keeps what it has prepared: vLLM's own number.
PREPARED_ROW_COUNTS = 32

#: oneDNN's form of a weight, multiplied by: (rows, bias or None) -> product.
Packed = Callable[["Tensor", "Tensor | None"], "Tensor"]


class _Deliveries:
    """How often this process was sent weights."""

    def __init__(self) -> None:
        self.count = 0


_deliveries = _Deliveries()


def keep_weights_live(module: ModuleType) -> None:
    """Let linear layers of vLLM (``module``: its ``layers.utils``) multiply by the weights they have now."""
    if os.environ.get(FIXED_WEIGHTS_VARIABLE):
        return
    require(module, DISPATCH)
    setattr(module, DISPATCH, use_live_weight)


def notice_new_weights(module: ModuleType) -> None:
    """Let vLLM's runner (of ``module``) count what its model is sent."""
    runner = module.CPUModelRunner
    require(runner, LOAD_MODEL)
    setattr(runner, LOAD_MODEL, _counting_deliveries(getattr(runner, LOAD_MODEL)))


def use_live_weight(layer: Any, remove_weight: bool = True) -> None:  # noqa: ARG001
    """Replaces ``dispatch_cpu_unquantized_gemm``: a weight sync takes effect at once."""
    layer.cpu_linear = LiveLinear(layer, _pack if _is_worth_packing(layer.weight) else None)


class LiveLinear:
    """Multiplies by the weight that ``layer`` has now."""

    def __init__(self, layer: Any, pack: "Callable[[Tensor], Packed] | None") -> None:
        self._layer = layer
        self._pack = pack
        self._packed: Packed | None = None
        self._packed_at = -1

    def __call__(self, x: "Tensor", _weight: "Tensor | None", bias: "Tensor | None") -> "Tensor":
        """Shapes: (..., in), (out, in), (out,) -> (..., out).

        The weight that is handed over is not read: it is the one that vLLM held when it made the layer.
        """
        import torch

        # What is compiled must not hold on to one packed form.
        if self._pack is None or torch.compiler.is_compiling():
            return torch.nn.functional.linear(x, self._layer.weight, bias)
        if self._packed is None or self._packed_at != _deliveries.count:
            self._packed, self._packed_at = self._pack(self._layer.weight), _deliveries.count
        return self._packed(x, bias)


def _is_worth_packing(weight: "Tensor") -> bool:
    size = weight.numel() * weight.element_size()
    if weight.ndim != 2 or weight.is_meta or size < LEAST_PACKED_BYTES:
        return False
    from vllm import _custom_ops as operations

    return bool(operations._supports_onednn)


def _pack(weight: "Tensor") -> Packed:
    from vllm import _custom_ops as operations

    handler = operations.create_onednn_mm(weight.data.t(), PREPARED_ROW_COUNTS)
    return lambda x, bias: operations.onednn_mm(handler, x, bias)


def _counting_deliveries(load_model: Callable[..., Any]) -> Callable[..., Any]:
    """``load_model``, after which each ``self.model.load_weights`` counts."""

    @wraps(load_model)
    def load(self: Any, *args: Any, **kwargs: Any) -> None:
        load_model(self, *args, **kwargs)
        require(type(self.model), LOAD_WEIGHTS)
        load_weights = getattr(self.model, LOAD_WEIGHTS)

        @wraps(load_weights)
        def load_and_count(*args: Any, **kwargs: Any) -> Any:
            try:
                return load_weights(*args, **kwargs)
            finally:  # some may have come before it failed
                _deliveries.count += 1

        setattr(self.model, LOAD_WEIGHTS, load_and_count)

    return load
