"""The model that is trained, and its tokenizer."""

import os
from pathlib import Path
from typing import Any

from trellis_recipes.memory.architecture import find_architecture

from trellis_train.preference.settings import Settings


class NoChatTemplate(ValueError):
    """The model cannot turn a conversation into tokens."""


def load_tokenizer(settings: Settings) -> Any:
    """Load the model's tokenizer; it must have a chat template because prompts are conversations."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(settings.model.model_name_or_path)
    if not tokenizer.chat_template:
        raise NoChatTemplate(f"The tokenizer of {settings.model.model_name_or_path} has no chat template.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(settings: Settings) -> Any:
    """Load the initial model: a language model, or one with a new scoring head."""
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, set_seed
    from trl import get_quantization_config

    # The head of a reward model is drawn from it, and so is an adapter.
    set_seed(settings.arguments.seed)
    chosen = settings.model
    arguments: dict[str, Any] = {"dtype": chosen.dtype}
    if chosen.attn_implementation is not None:
        arguments["attn_implementation"] = chosen.attn_implementation
    quantization = get_quantization_config(chosen)
    if quantization is not None:
        arguments["quantization_config"] = quantization
    shape = find_architecture(Path(chosen.model_name_or_path))
    is_quantised = quantization is not None or (shape is not None and bool(shape.base_bits))
    if is_quantised:
        # Quantised weights cannot be moved afterwards: each rank loads them where it trains.
        on_cpu = settings.arguments.use_cpu
        arguments["device_map"] = {"": "cpu" if on_cpu else int(os.environ.get("LOCAL_RANK", "0"))}
    if settings.recipe == "reward_model":
        from trl.trainer.reward_trainer import suppress_seqcls_warning

        with suppress_seqcls_warning():
            return AutoModelForSequenceClassification.from_pretrained(
                chosen.model_name_or_path, num_labels=1, **arguments
            )
    model = AutoModelForCausalLM.from_pretrained(chosen.model_name_or_path, **arguments)
    if is_quantised:
        _release_file(model)
    return model


def _release_file(model: Any) -> None:
    """Copy the weights that are used as they lie in the mapped file, so that it is not kept in memory.

    On a CPU these are embeddings and norms; without this, what was quantised would stay beside the result.
    """
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.device.type == "cpu":
            parameter.data = parameter.data.clone()
