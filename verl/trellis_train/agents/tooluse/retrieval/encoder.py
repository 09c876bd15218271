"""One encoder for queries and tools: a Hugging Face model, pooled and brought to length 1."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

Pooling = Literal["mean", "last"]
#: Beside the weights: how they are used.
SETTINGS_FILE = "retrieval.json"


@dataclass(frozen=True)
class EncoderSettings:
    """How texts become vectors."""

    pooling: Pooling = "mean"
    #: Tokens; longer texts are cut at their end.
    max_length: int = 256


class Encoder(torch.nn.Module):
    """A transformer without its head; decoders (Qwen2) and encoders (BERT) alike."""

    def __init__(self, model: Any, tokenizer: Any, settings: EncoderSettings) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        #: Share of the tokens that are hidden in training, so that no phrase alone gives a tool away.
        self.token_dropout = 0.0

    @classmethod
    def load(
        cls, folder: Path, settings: EncoderSettings | None = None, *, dtype: str = "float32"
    ) -> "Encoder":
        """Load from a Hugging Face folder; without ``settings``, use those it was trained with."""
        from transformers import AutoModel, AutoTokenizer

        if settings is None:
            file = folder / SETTINGS_FILE
            settings = (
                EncoderSettings(**json.loads(file.read_text())) if file.is_file() else EncoderSettings()
            )
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        model = AutoModel.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="sdpa")
        return cls(model, tokenizer, settings)

    def save(self, folder: Path) -> None:
        """Save weights, tokenizer and settings."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        (folder / SETTINGS_FILE).write_text(json.dumps(asdict(self.settings)))

    def forward(self, texts: Sequence[str]) -> torch.Tensor:
        """Encode texts as vectors of length 1, (texts, hidden), in float32."""
        tokens = self.tokenizer(
            list(texts),
            padding=True,
            padding_side="right",
            truncation=True,
            max_length=self.settings.max_length,
            return_tensors="pt",
        ).to(next(self.model.parameters()).device)
        mask = tokens["attention_mask"]
        if self.training and self.token_dropout:
            mask = hide_tokens(mask, self.token_dropout)
        states = self.model(input_ids=tokens["input_ids"], attention_mask=mask).last_hidden_state.float()
        return torch.nn.functional.normalize(pool(states, mask, self.settings.pooling), dim=-1)

    @torch.no_grad()
    def encode(self, texts: Sequence[str], batch_size: int = 128) -> torch.Tensor:
        """Encode texts without gradients, in length-sorted batches; vectors on the CPU in the given order."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        was_training = self.training
        self.eval()
        vectors = torch.empty(len(texts), 0)
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            encoded = self([texts[place] for place in places]).cpu()
            if not vectors.numel():
                vectors = torch.empty(len(texts), encoded.shape[1])
            vectors[places] = encoded
        self.train(was_training)
        return vectors


def hide_tokens(mask: torch.Tensor, share: float) -> torch.Tensor:
    """Drop a random share of the mask's ones; a text that would lose all tokens keeps them all."""
    kept = mask * (torch.rand(mask.shape, device=mask.device) >= share).to(mask.dtype)
    return torch.where(kept.any(dim=1, keepdim=True), kept, mask)


def pool(states: torch.Tensor, mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Pool (batch, tokens, hidden) to (batch, hidden); padding is on the right and does not count."""
    if pooling == "last":
        # The last place where the mask is 1; a text without tokens takes the first.
        last = (mask.cumsum(1) * mask).argmax(dim=1)
        return states[torch.arange(len(states), device=states.device), last]
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)
