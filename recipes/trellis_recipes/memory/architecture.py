"""The shape of a decoder-only model, read from its ``config.json``, and its exact number of parameters.

Counts follow the modules of Hugging Face transformers: embeddings V·h, for each layer the
projections of attention (q: h·a·d, k and v: h·g·d, o: a·d·h with a heads, g key-value heads
and head dimension d), the gated MLP 3·h·i (for each expert, with a router h·E), norms, and an
output head V·h unless it is tied to the embeddings.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAX_CONFIG_BYTES = 4 * 1024**2

#: Families whose modules are known exactly, and whether their head is tied where nothing is said.
KNOWN_FAMILIES = {
    "llama": False,
    "mistral": False,
    "qwen2": False,
    "qwen3": False,
    "mixtral": False,
    "qwen2_moe": False,
    "qwen3_moe": False,
    "gemma": True,
    "phi3": False,
}
_QKV_BIAS = {"qwen2", "qwen2_moe"}
_QK_NORM = {"qwen3", "qwen3_moe"}


class UnknownArchitecture(ValueError):
    """The configuration lacks what a decoder-only transformer says of itself."""


@dataclass(frozen=True)
class Experts:
    """The experts of a mixture-of-experts layer."""

    count: int
    per_token: int
    intermediate: int
    #: Intermediate size of the expert that every token passes; 0 without one.
    shared: int = 0
    #: Layers that have experts; the others have the dense MLP.
    layers: int = 0

    def parameters(self, hidden: int) -> int:
        """Count the parameters of one layer's experts and router, and its shared expert and gate."""
        shared = 3 * hidden * self.shared + (hidden if self.shared else 0)
        return self.count * (3 * hidden * self.intermediate + hidden) + shared


@dataclass(frozen=True)
class Architecture:
    """What the estimate needs to know of a model."""

    family: str
    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    is_tied: bool
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    has_mlp_bias: bool = False
    has_qk_norm: bool = False
    experts: Experts | None = None
    #: In which its files hold the linear layers; 0 where they are not quantised.
    base_bits: int = 0
    #: Positions that the model was made for; None where its configuration does not say.
    context_length: int | None = None
    #: By how much its RoPE is scaled beyond these positions (YaRN, arXiv:2309.00071, and others).
    rope_factor: float = 1.0
    #: Whether the family's modules are known exactly.
    is_known: bool = True

    @property
    def query_width(self) -> int:
        """Width of all query heads together (a·d)."""
        return self.heads * self.head_dim

    @property
    def key_value_width(self) -> int:
        """Width of all keys, or values, together (g·d)."""
        return self.key_value_heads * self.head_dim

    @property
    def embedding_parameters(self) -> int:
        """The table of token embeddings."""
        return self.vocabulary * self.hidden

    @property
    def head_parameters(self) -> int:
        """The output head, where it has weights of its own."""
        return 0 if self.is_tied else self.vocabulary * self.hidden

    @property
    def largest_weight(self) -> int:
        """Elements of the largest tensor: mostly the embeddings, or all experts of a block in one."""
        experts = self.experts
        together = experts.count * 2 * experts.intermediate * self.hidden if experts is not None else 0
        return max(self.embedding_parameters, self.hidden * self.intermediate, together)

    @property
    def linear_shapes(self) -> dict[str, tuple[int, int]]:
        """Input and output width of each linear layer of a dense block, by its module's name."""
        attention = {
            "q_proj": (self.hidden, self.query_width),
            "k_proj": (self.hidden, self.key_value_width),
            "v_proj": (self.hidden, self.key_value_width),
            "o_proj": (self.query_width, self.hidden),
        }
        if self.experts is not None:
            return attention  # the weights of experts are no linear modules in transformers 5
        return attention | {
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def layer_parameters(self) -> int:
        """The largest block."""
        experts = self.experts
        largest = experts.parameters(self.hidden) if experts is not None else self._dense_parameters()
        return self._attention_parameters() + largest + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters of the causal language model."""
        blocks = self.layers * (self._attention_parameters() + 2 * self.hidden)
        with_experts = 0
        if self.experts is not None:
            with_experts = self.experts.layers
            blocks += with_experts * self.experts.parameters(self.hidden)
        blocks += (self.layers - with_experts) * self._dense_parameters()
        return self.embedding_parameters + self.head_parameters + blocks + self.hidden

    @property
    def active_intermediate(self) -> int:
        """Width of the MLP that one token passes, over all its experts."""
        if self.experts is None:
            return self.intermediate
        return self.experts.per_token * self.experts.intermediate + self.experts.shared

    def count_lora(self, rank: int, targets: frozenset[str] | None = None) -> int:
        """Count the parameters of adapters of a rank on some linear layers, by default all but the head.

        Two matrices for each: rank·(input + output) (LoRA, arXiv:2106.09685).
        """
        widths = (
            width_in + width_out
            for name, (width_in, width_out) in self.linear_shapes.items()
            if targets is None or name in targets
        )
        return self.layers * rank * sum(widths)

    def adapted_width(self, targets: frozenset[str] | None = None) -> int:
        """Sum the output widths of a block's linear layers that have adapters."""
        return sum(
            width_out
            for name, (_, width_out) in self.linear_shapes.items()
            if targets is None or name in targets
        )

    def _attention_parameters(self) -> int:
        projections = 2 * self.hidden * self.query_width + 2 * self.hidden * self.key_value_width
        bias = (self.query_width + 2 * self.key_value_width) * self.has_qkv_bias
        bias += self.hidden * self.has_output_bias
        return projections + bias + 2 * self.head_dim * self.has_qk_norm

    def _dense_parameters(self) -> int:
        bias = (2 * self.intermediate + self.hidden) * self.has_mlp_bias
        return 3 * self.hidden * self.intermediate + bias


def read_model_folder(folder: Path) -> Architecture:
    """Read the shape from the ``config.json`` of a folder in Hugging Face format.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no JSON, too large, or not of a decoder-only transformer (``UnknownArchitecture``).
        RecursionError: It is nested too deeply.
    """
    path = folder / "config.json"
    if path.stat().st_size > _MAX_CONFIG_BYTES:
        raise UnknownArchitecture("config.json is too large")
    config = json.loads(path.read_bytes())
    if not isinstance(config, dict):
        raise UnknownArchitecture("config.json is not an object")
    return read_architecture(config)


def find_architecture(folder: Path) -> Architecture | None:
    """Read the architecture of the model in a folder; None if its configuration cannot be read."""
    try:
        return read_model_folder(folder)
    except (OSError, ValueError, RecursionError):
        return None


def read_architecture(config: dict[str, Any]) -> Architecture:
    """Read the architecture from a ``config.json``; raises ``UnknownArchitecture`` if it is not described.

    Of a model for images and text, the text model is meant.
    """
    text = config.get("text_config")
    if isinstance(text, dict) and "hidden_size" in text:
        config = {**config, **text}
    family = str(config.get("model_type", ""))
    hidden, layers = _number(config, "hidden_size"), _number(config, "num_hidden_layers")
    heads = _number(config, "num_attention_heads")
    has_bias = bool(config.get("attention_bias", False))
    tied = config.get("tie_word_embeddings")
    return Architecture(
        family=family,
        hidden=hidden,
        layers=layers,
        heads=heads,
        key_value_heads=_number(config, "num_key_value_heads", heads),
        head_dim=_number(config, "head_dim", max(1, hidden // heads)),
        intermediate=_number(config, "intermediate_size"),
        vocabulary=_number(config, "vocab_size"),
        is_tied=bool(tied) if tied is not None else KNOWN_FAMILIES.get(family, True),
        has_qkv_bias=bool(config.get("qkv_bias", True)) if family in _QKV_BIAS else has_bias,
        has_output_bias=has_bias and family not in _QKV_BIAS,
        has_mlp_bias=bool(config.get("mlp_bias", False)),
        has_qk_norm=family in _QK_NORM,
        experts=_read_experts(config, layers),
        base_bits=_read_bits(config.get("quantization_config")),
        context_length=_read_context(config),
        rope_factor=_read_rope_factor(config),
        is_known=family in KNOWN_FAMILIES,
    )


def _read_context(config: dict[str, Any]) -> int | None:
    length = config.get("max_position_embeddings")
    return length if isinstance(length, int) and not isinstance(length, bool) and length > 0 else None


def _read_rope_factor(config: dict[str, Any]) -> float:
    rope = config.get("rope_scaling") or config.get("rope_parameters")
    factor = rope.get("factor") if isinstance(rope, dict) else None
    if not isinstance(factor, int | float) or isinstance(factor, bool):
        return 1.0
    return max(1.0, float(factor))


def _read_bits(quantization: Any) -> int:
    if (
        not isinstance(quantization, dict)
        or quantization.get("quant_method", "bitsandbytes") != "bitsandbytes"
    ):
        return 0
    return 4 if quantization.get("load_in_4bit") else 8 if quantization.get("load_in_8bit") else 0


def _read_experts(config: dict[str, Any], layers: int) -> Experts | None:
    count = config.get("num_local_experts") or config.get("num_experts")
    if not isinstance(count, int) or count < 1:
        return None
    sparse_step = _number(config, "decoder_sparse_step", 1) or 1
    dense = config.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise UnknownArchitecture("config.json has no usable 'mlp_only_layers'.")
    with_experts = [layer for layer in range(layers) if layer not in dense and (layer + 1) % sparse_step == 0]
    return Experts(
        count=count,
        per_token=_number(config, "num_experts_per_tok", 2),
        intermediate=_number(config, "moe_intermediate_size", _number(config, "intermediate_size")),
        shared=_number(config, "shared_expert_intermediate_size", 0),
        layers=len(with_experts),
    )


def _number(config: dict[str, Any], key: str, fallback: int | None = None) -> int:
    value = config.get(key)
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40
    if is_number and (value or fallback is not None):
        return int(value or 0)
    if value is None and fallback is not None:
        return fallback
    raise UnknownArchitecture(f"config.json has no usable '{key}'.")
