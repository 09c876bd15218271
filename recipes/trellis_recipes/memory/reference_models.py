"""Shapes of published models, by which the sizes are named that a preset has memory for.

From the ``config.json`` of Qwen2.5-*-Instruct (arXiv:2412.15115), which have one of the largest vocabularies
of their sizes: logits are what a pass takes most memory for.
"""

from trellis_recipes.memory.architecture import Architecture, read_architecture

#: Hidden size, intermediate size, layers, heads, key-value heads, vocabulary, whether the head is tied.
_SHAPES = {
    "0.5B": (896, 4864, 24, 14, 2, 151936, True),
    "1.5B": (1536, 8960, 28, 12, 2, 151936, True),
    "3B": (2048, 11008, 36, 16, 2, 151936, True),
    "7B": (3584, 18944, 28, 28, 4, 152064, False),
    "14B": (5120, 13824, 48, 40, 8, 152064, False),
    "32B": (5120, 27648, 64, 40, 8, 152064, False),
    "72B": (8192, 29568, 80, 64, 8, 152064, False),
}


def reference_models() -> dict[str, Architecture]:
    """Return the reference models by the size in their names, the smallest first."""
    return {
        name: read_architecture(
            {
                "model_type": "qwen2",
                "hidden_size": hidden,
                "intermediate_size": intermediate,
                "num_hidden_layers": layers,
                "num_attention_heads": heads,
                "num_key_value_heads": groups,
                "vocab_size": vocabulary,
                "tie_word_embeddings": is_tied,
            }
        )
        for name, (hidden, intermediate, layers, heads, groups, vocabulary, is_tied) in _SHAPES.items()
    }
