"""Compute the logits of responses with one forward pass per shared prompt."""

import inspect
from typing import Any

import torch
from torch import Tensor

from trellis_train.cpu.prompts import SharedPrompts

#: Arguments of transformers' causal models that a pass in two parts needs.
ARGUMENTS = ("past_key_values", "logits_to_keep", "position_ids")


def can_share_prompts(model: Any, config: Any) -> bool:
    """Tell whether a pass can be split in two: all layers of the transformers model keep keys and values.

    Layers with a window or a state do not, and with gradient checkpointing nothing is kept.
    """
    from transformers.cache_utils import DynamicLayer

    known = inspect.signature(_base(model).forward).parameters
    is_whole = all(type(layer) is DynamicLayer for layer in _new_cache(config).layers)
    is_checkpointing = bool(getattr(model, "is_gradient_checkpointing", False))
    return is_whole and not is_checkpointing and all(name in known for name in ARGUMENTS)


def response_logits(model: Any, config: Any, shared: SharedPrompts) -> Tensor:
    """Compute logits for the tokens of all responses, one response after the other: (tokens, vocabulary)."""
    cache = _new_cache(config)
    before_first = _read_prompts(model, cache, shared)
    for layer in cache.layers:
        layer.keys = layer.keys.index_select(0, shared.owners)
        layer.values = layer.values.index_select(0, shared.owners)
    logits = before_first.index_select(0, shared.owners).unsqueeze(1)
    if shared.responses.shape[1] > 1:
        logits = torch.cat([logits, _read_responses(model, cache, shared)], dim=1)
    return logits[shared.is_token]


def _read_prompts(model: Any, cache: Any, shared: SharedPrompts) -> Tensor:
    """Fill ``cache``; the logits behind the last token of each prompt: (prompts, vocabulary).

    Causal attention needs no mask here: what fills a row up stands behind its tokens.
    """
    rows, longest = shared.prompts.shape
    ends, columns = torch.unique(shared.prompt_lengths - 1, return_inverse=True)
    output = model(
        input_ids=shared.prompts,
        attention_mask=None,
        position_ids=torch.arange(longest).expand(rows, longest),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=ends,
    )
    return output.logits[torch.arange(rows), columns]


def _read_responses(model: Any, cache: Any, shared: SharedPrompts) -> Tensor:
    """Compute the logits after each response token but the last: (responses, longest - 1, vocabulary)."""
    tokens = shared.responses[:, :-1]
    lengths = shared.prompt_lengths[shared.owners].unsqueeze(1)
    is_prompt = torch.arange(shared.prompts.shape[1]) < lengths
    output = model(
        input_ids=tokens,
        # The cache goes on behind the longest prompt: what fills up the others must not be seen.
        attention_mask=torch.cat([is_prompt.long(), torch.ones_like(tokens)], dim=1),
        position_ids=lengths + torch.arange(tokens.shape[1]),
        past_key_values=cache,
        use_cache=True,
    )
    return output.logits


def _new_cache(config: Any) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=config)


def _base(model: Any) -> Any:
    """Return the transformers model inside a PEFT model."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model
