"""Attention on rows that hold several sequences, one sequence after the other.

PyTorch's attention knows no boundaries inside a row: transformers hides the other sequences behind a mask as
large as the row is long, squared, and all of it is computed. On a CPU that is a third of a step of a model of
135 million parameters whose rows hold eight conversations.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

#: PyTorch's attention, as a model's ``attn_implementation`` names it.
SDPA = "sdpa"


def register_packed_attention() -> None:
    """Have all models of this process that attend by ``sdpa`` see the sequences of a row apart.

    It goes by the same name, as that is written into the configuration of what is trained.
    """
    attend = ALL_ATTENTION_FUNCTIONS[SDPA]
    if not isinstance(attend, PackedAttention):
        AttentionInterface.register(SDPA, PackedAttention(attend))


class PackedAttention:
    """``sdpa`` of transformers, called for one sequence at a time where a mask says that they are apart."""

    def __init__(self, attend: Callable[..., tuple[Tensor, None]]) -> None:
        self._attend = attend
        self._mask: ReferenceType[Tensor] | None = None
        #: Of the last mask: where its sequences begin, and its end; None where it was another one.
        self.bounds: list[int] | None = None

    def __call__(
        self,
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        **named: Any,
    ) -> tuple[Tensor, None]:
        """Attend; ``query``, ``key`` and ``value`` are (rows, heads, tokens, width)."""
        bounds = None if attention_mask is None else self._remember(attention_mask)
        if bounds is None:
            return self._attend(module, query, key, value, attention_mask, **named)
        parts = [
            self._attend(
                module,
                query[:, :, start:end],
                key[:, :, start:end],
                value[:, :, start:end],
                None,
                **{**named, "is_causal": True},
            )[0]
            for start, end in pairwise(bounds)
        ]
        return torch.cat(parts, dim=1), None

    def _remember(self, mask: Tensor) -> list[int] | None:
        """Return the bounds of ``mask``; all layers of a pass get the same one."""
        if self._mask is None or self._mask() is not mask:
            self._mask, self.bounds = ref(mask), find_bounds(mask)
        return self.bounds


def find_bounds(mask: Tensor) -> list[int] | None:
    """Find where the sequences of the only row begin, and its end; None for any other kind of mask.

    ``mask`` is (rows, 1, tokens, tokens), true where a token sees another. It has to be that of causal
    sequences that fill the row: a window, a prefix that is seen whole, padding or a cache are left alone.
    """
    tokens = mask.shape[-1]
    if mask.dtype != torch.bool or mask.shape != (1, 1, tokens, tokens):
        return None
    first_seen = mask[0, 0].to(torch.uint8).argmax(dim=-1)
    place = torch.arange(tokens, device=mask.device)
    starts = place[first_seen == place]
    of_sequence = torch.searchsorted(starts, place, right=True)
    is_expected = (of_sequence[:, None] == of_sequence) & (place[:, None] >= place)
    if not torch.equal(mask[0, 0], is_expected):
        return None
    return [*starts.tolist(), tokens]
