"""Bytes of what a run holds in memory: one formula each, with its source.

Sizes are in bytes, widths in elements. ``c`` is the size of an element in the precision that
the model computes with.
"""

from trellis_recipes.memory.architecture import Architecture

#: Two moments of AdamW in full precision (ZeRO, arXiv:1910.02054, section 3.1, counts the same K = 12
#: with the full-precision copy of the weights, which is the weights themselves here).
ADAM_BYTES = 8
#: Blocks of 64 weights share a constant, whose own constants are quantised once more: 4.127 bits
#: (QLoRA, arXiv:2305.14314, section 3).
NF4_BYTES = 4.127 / 8
INT8_BYTES = 1.0


def kv_bytes_per_token(architecture: Architecture, element: int) -> int:
    """Return the KV cache bytes per token over all layers: 2·L·g·d·c (GQA, arXiv:2305.13245)."""
    return 2 * architecture.layers * architecture.key_value_width * element


def activation_bytes_per_token(architecture: Architecture, element: int) -> int:
    """Return the bytes per token that one block keeps for its backward pass.

    The count of Korthikanti et al. (arXiv:2205.05198, section 4.1) for the modules of Llama and
    with attention that keeps no s·s scores (FlashAttention, arXiv:2205.14135): two RMS norms keep
    their input in full precision and their normalised output, both hand their result to linear
    layers; attention keeps queries, keys and values repeated for all heads, and its output twice;
    the gated MLP keeps gate, its activation, up and their product.
    """
    norms = 2 * (4 * architecture.hidden + 2 * element * architecture.hidden)
    attention = 5 * element * architecture.query_width
    return norms + attention + 4 * element * architecture.active_intermediate


def checkpointed_bytes_per_token(architecture: Architecture, element: int) -> int:
    """Return the bytes per token kept with gradient checkpointing: all blocks' inputs and one whole block.

    Chen et al., arXiv:1604.06174, with one segment for each block.
    """
    inputs = architecture.layers * architecture.hidden * element
    return inputs + activation_bytes_per_token(architecture, element)


def logits_bytes_per_token(architecture: Architecture, element: int, *, is_training: bool) -> int:
    """Return the bytes per token of the logits: as computed, plus a full-precision copy for the softmax.

    Training holds their gradient in full precision besides.
    """
    copies = element + 4 + (4 if is_training else 0)
    return architecture.vocabulary * copies


def quantised_bytes(architecture: Architecture, parameters: int, bits: int, element: int) -> int:
    """Return the bytes of a 4- or 8-bit base model: linear layers in NF4 or int8, the rest unquantized.

    The rest (embeddings, head and norms) takes ``element`` bytes per parameter.
    """
    linear = architecture.layers * sum(a * b for a, b in architecture.linear_shapes.values())
    linear = min(linear, parameters)
    each = NF4_BYTES if bits == 4 else INT8_BYTES
    return int(linear * each) + element * (parameters - linear)
