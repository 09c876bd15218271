"""A tiny Llama as a GGUF file, with the weights that a conversion has to give back."""

from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

HIDDEN, HEADS, KV_HEADS, LAYERS, INTERMEDIATE, CONTEXT = 64, 4, 2, 2, 96, 128
TOKENS = ["<unk>", "<|im_start|>", "<|im_end|>", *"abcdefghijklmnopqrstuvwxyz", "Ġ", "ab", "cd"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }} {{ message['content'] }}<|im_end|>"
    "{% endfor %}"
)
Weights = dict[str, npt.NDArray[np.float32]]

#: Names of the file by names of the model, for one layer.
_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write_gguf(
    path: Path,
    *,
    quantisation: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    architecture: str = "llama",
) -> Weights:
    """Write the file; return the weights by the names that transformers gives them."""
    weights = _make_weights()
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(TOKENS))
    _add_tokenizer(writer)
    for name, values in weights.items():
        stored = _permute(name, values)
        if values.ndim == 1 or quantisation is gguf.GGMLQuantizationType.F32:
            writer.add_tensor(_name_in_file(name), stored)
        else:
            quantised = gguf.quants.quantize(stored, quantisation)
            writer.add_tensor(_name_in_file(name), quantised, raw_dtype=quantisation)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def _make_weights() -> Weights:
    generator = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (len(TOKENS), HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (len(TOKENS), HIDDEN),
    }
    inner = KV_HEADS * HIDDEN // HEADS
    layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (inner, HIDDEN),
        "self_attn.v_proj": (inner, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj": (HIDDEN, INTERMEDIATE),
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
    }
    for index in range(LAYERS):
        shapes |= {f"model.layers.{index}.{name}.weight": shape for name, shape in layer.items()}
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def _name_in_file(name: str) -> str:
    fixed = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in fixed:
        return fixed[name]
    _, _, index, rest = name.split(".", 3)
    return f"blk.{index}.{_LAYER[rest.removesuffix('.weight')]}.weight"


def _permute(name: str, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Permute queries and keys as llama.cpp does: each head's halves interleaved (convert_hf_to_gguf.py)."""
    heads = {"q_proj": HEADS, "k_proj": KV_HEADS}.get(name.split(".")[-2])
    if heads is None:
        return values
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, values.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    """Add a byte-pair vocabulary whose end of sequence is ``<|im_end|>``."""
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([control if token.startswith("<") else normal for token in TOKENS])
    writer.add_token_merges(["a b", "c d"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
