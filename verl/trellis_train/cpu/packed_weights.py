"""Packs weights that a trainer sends a rollout engine, in the form that a CPU multiplies by fastest.

vLLM packs linear weights for oneDNN after loading and drops the original, which ``compat.vllm_cpu`` keeps.
Here a large weight is packed anew at its first use after new ones came. A weight that is not packed has to be
each time it is multiplied by: on two cores, 32 rows times 512 x 3200 take 3.3 ms with the weight as it is and
1.6 ms with the packed one, which takes 2 ms to make.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from trellis_train.compat.vllm_cpu import LiveLinear

if TYPE_CHECKING:
    from torch import Tensor

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


def use_packed_weight(layer: Any, remove_weight: bool = True) -> None:  # noqa: ARG001
    """Replace ``dispatch_cpu_unquantized_gemm`` so that a weight sync takes effect at once."""
    is_worth_it = _is_worth_packing(layer.weight)
    layer.cpu_linear = PackedLinear(layer, _pack) if is_worth_it else LiveLinear(layer)


class PackedLinear(LiveLinear):
    """Multiplies by the packed form of the weight that ``layer`` has now."""

    def __init__(self, layer: Any, pack: "Callable[[Tensor], Packed]") -> None:
        super().__init__(layer)
        self._pack = pack
        self._packed: Packed | None = None
        self._packed_at = -1

    def __call__(self, x: "Tensor", weight: "Tensor | None", bias: "Tensor | None") -> "Tensor":
        """Multiply by the packed weight; shapes: (..., in), (out, in), (out,) -> (..., out)."""
        import torch

        if torch.compiler.is_compiling():  # what is compiled must not hold on to one packed form
            return super().__call__(x, weight, bias)
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


def counting_deliveries(load_model: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``load_model`` to count each later call of ``self.model.load_weights``."""

    @wraps(load_model)
    def load(self: Any, *args: Any, **kwargs: Any) -> None:
        load_model(self, *args, **kwargs)
        load_weights = self.model.load_weights

        @wraps(load_weights)
        def load_and_count(*args: Any, **kwargs: Any) -> Any:
            try:
                return load_weights(*args, **kwargs)
            finally:  # some may have come before it failed
                _deliveries.count += 1

        self.model.load_weights = load_and_count

    return load
