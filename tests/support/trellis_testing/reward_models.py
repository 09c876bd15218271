"""Reward models that are small enough for a test."""

from pathlib import Path

from trellis_train.starter.model import make_tokenizer


def save_reward_model(folder: Path, *, outputs: int = 1) -> Path:
    """Save a tiny sequence classifier with seeded weights, and the starter's tokenizer."""
    import torch
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, num_labels=outputs,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    Qwen2ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
