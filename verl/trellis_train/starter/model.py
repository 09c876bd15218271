"""Qwen2 models with byte-level vocabularies and weights from a seed; the starter has 0.8M parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
#: Long enough for a worked problem of GSM8K in bytes.
MAX_POSITIONS = 4096


@dataclass(frozen=True)
class ModelSize:
    """Widths and depth of a model."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int


STARTER = "starter"
SIZES = {
    STARTER: ModelSize(hidden=128, intermediate=384, layers=4, heads=4, key_value_heads=2),
    # Not taught anything: to measure with.
    "20m": ModelSize(hidden=512, intermediate=1600, layers=6, heads=8, key_value_heads=4),
}


def write_model(folder: Path, seed: int, size: str = STARTER) -> None:
    """Write weights, configuration and tokenizer in Hugging Face format; ``size`` is one of ``SIZES``."""
    tokenizer = make_tokenizer()
    save(
        folder,
        draw_model(SIZES[size], tokenizer, seed=seed, max_position_embeddings=MAX_POSITIONS),
        tokenizer,
    )


def draw_model(
    size: ModelSize,
    tokenizer: "PreTrainedTokenizerFast",
    *,
    seed: int,
    finish: "Callable[[Qwen2ForCausalLM], None] | None" = None,
    **config: Any,
) -> "Qwen2ForCausalLM":
    """Create a Qwen2 of that size with seeded weights; ``finish`` may set some, by the same seed."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    shape = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.key_value_heads,
        tie_word_embeddings=True,
        use_sliding_window=False,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids(TURN_END),
        pad_token_id=tokenizer.convert_tokens_to_ids(END_OF_TEXT),
        dtype="float32",
        **config,
    )
    # A generator of its own would be cleaner, but transformers draws from the global one.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(shape)
        if finish is not None:
            finish(model)
    return model


def save(folder: Path, model: "Qwen2ForCausalLM", tokenizer: "PreTrainedTokenizerFast") -> None:
    """Write both in Hugging Face format."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_tokenizer() -> "PreTrainedTokenizerFast":
    """Make one token for each byte, and the three that mark turns and text ends."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = [END_OF_TEXT, TURN_START, TURN_END]
    tokenizer = Tokenizer(BPE(vocab={symbol: index for index, symbol in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(specials)
    return wrap_tokenizer(tokenizer, chat_template=CHAT_TEMPLATE, longest=MAX_POSITIONS)


def wrap_tokenizer(tokenizer: "Tokenizer", *, chat_template: str, longest: int) -> "PreTrainedTokenizerFast":
    """Wrap the tokenizer for transformers; turns end with their own token."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[TURN_START],
        chat_template=chat_template,
        model_max_length=longest,
        clean_up_tokenization_spaces=False,
    )
