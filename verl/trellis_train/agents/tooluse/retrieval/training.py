"""Trains the encoder: queries against tools, measured over all tools, beside BM25 over the same."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trellis_train.agents.tooluse.retrieval.bm25 import BM25
from trellis_train.agents.tooluse.retrieval.encoder import Encoder
from trellis_train.agents.tooluse.retrieval.index import ToolIndex
from trellis_train.agents.tooluse.retrieval.loss import TEMPERATURE, symmetric_info_nce
from trellis_train.agents.tooluse.retrieval.queries import Corpus, Query, draw_negatives, order_of_epoch
from trellis_train.agents.tooluse.retrieval.ranking import measure_ranks, rank_of_targets
from trellis_train.hooks.checkpoints import locate_step

#: In a checkpoint: the encoder as a Hugging Face folder, with the vectors of all tools; and the rest.
MODEL_FOLDER, STATE_FILE = "huggingface", "trainer_state.pt"
_STAGING = ".unfinished"


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast."""

    #: None: as many as the epochs give.
    total_steps: int | None = None
    epochs: int = 3
    batch_size: int = 64
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    weight_decay: float = 0.0
    grad_clip: float = 1.0
    temperature: float = TEMPERATURE
    hard_negatives: int = 4
    token_dropout: float = 0.0
    #: Compute activations again in the backward pass, instead of keeping them.
    gradient_checkpointing: bool = False
    seed: int = 0


class RetrievalTrainer:
    """The encoder with its optimizer and schedule, step by step; the same settings give the same weights."""

    def __init__(
        self, encoder: Encoder, corpus: Corpus, queries: Sequence[Query], settings: TrainingSettings
    ) -> None:
        if len(queries) < settings.batch_size:
            raise ValueError(f"{len(queries)} queries are too few for a batch of {settings.batch_size}")
        self.encoder, self.corpus, self.queries, self.settings = encoder, corpus, list(queries), settings
        self._siblings = corpus.siblings()
        self.steps_per_epoch = len(queries) // settings.batch_size
        self.total_steps = settings.total_steps or settings.epochs * self.steps_per_epoch
        self.step = 0
        encoder.token_dropout = settings.token_dropout
        if settings.gradient_checkpointing:
            encoder.model.gradient_checkpointing_enable({"use_reentrant": False})
        torch.manual_seed(settings.seed)
        self.optimizer = torch.optim.AdamW(
            encoder.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._share_of_rate)

    def train_step(self) -> dict[str, float]:
        """Run one update and return the metrics of the step."""
        self.encoder.train()
        batch = self._batch()
        rate = self.scheduler.get_last_lr()[0]
        negatives = draw_negatives(
            batch,
            self.corpus,
            self._siblings,
            self.settings.hard_negatives,
            seed=self.settings.seed,
            step=self.step,
        )
        tools = list(
            dict.fromkeys([query.tool for query in batch] + [each for row in negatives for each in row])
        )
        places = {tool: place for place, tool in enumerate(tools)}
        targets = torch.tensor([places[query.tool] for query in batch])
        query_vectors = self.encoder([query.text for query in batch])
        tool_vectors = self.encoder([self.corpus.cards[tool] for tool in tools])
        loss, accuracy = symmetric_info_nce(
            query_vectors,
            tool_vectors,
            targets.to(query_vectors.device),
            temperature=self.settings.temperature,
        )
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), self.settings.grad_clip)
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1
        return {
            "train/loss": loss.item(),
            "train/accuracy": accuracy.item(),
            "train/grad_norm": float(norm),
            "train/learning_rate": float(rate),
        }

    def save(self, checkpoint_dir: Path) -> Path:
        """Save ``global_step_N`` with encoder, tool vectors and training state; complete or not at all."""
        place = locate_step(checkpoint_dir, self.step)
        staging = checkpoint_dir / _STAGING
        shutil.rmtree(staging, ignore_errors=True)
        folder = staging / MODEL_FOLDER
        folder.mkdir(parents=True)
        self.encoder.save(folder)
        ToolIndex(self.corpus.names, self.encoder.encode(self.corpus.cards).numpy()).save(folder)
        state = {
            "step": self.step,
            "total_steps": self.total_steps,
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "rng": torch.get_rng_state(),
        }
        torch.save(state, staging / STATE_FILE)
        if place.exists():  # of an attempt that came further than the checkpoint this one resumed from
            shutil.rmtree(place)
        staging.rename(place)
        return place

    def restore(self, checkpoint: Path) -> None:
        """Go on where ``save`` was called; the encoder's weights are to be loaded from there already."""
        try:
            state: dict[str, Any] = torch.load(checkpoint / STATE_FILE, weights_only=True)
        except (OSError, RuntimeError, EOFError) as error:
            raise BadCheckpoint(f"the checkpoint {checkpoint} cannot be resumed: {error}") from error
        self.step = int(state["step"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["rng"])

    def _batch(self) -> list[Query]:
        epoch, place = divmod(self.step, self.steps_per_epoch)
        order = order_of_epoch(len(self.queries), self.settings.seed, epoch)
        size = self.settings.batch_size
        return [self.queries[row] for row in order[place * size : (place + 1) * size]]

    def _share_of_rate(self, step: int) -> float:
        """Return the learning rate's share: it rises linearly in warm-up, then falls to 0 as a cosine."""
        warmup = int(self.settings.warmup_ratio * self.total_steps)
        if step < warmup:
            return (step + 1) / (warmup + 1)
        progress = (step - warmup) / max(1, self.total_steps - warmup)
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))


class BadCheckpoint(ValueError):
    """A checkpoint is not complete or not one of this trainer's."""


def measure_encoder(encoder: Encoder, corpus: Corpus, queries: Sequence[Query]) -> dict[str, float]:
    """Measure ``recall@k`` and ``mrr@10`` over all tools of the corpus, by exact search."""
    scores = encoder.encode([query.text for query in queries]) @ encoder.encode(corpus.cards).T
    return measure_ranks(rank_of_targets(scores.numpy(), [query.tool for query in queries]))


def measure_bm25(corpus: Corpus, queries: Sequence[Query]) -> dict[str, float]:
    """Measure BM25 on the same queries and tool descriptions."""
    bm25 = BM25(corpus.cards)
    scores = np.stack([bm25.scores(query.text) for query in queries])
    return measure_ranks(rank_of_targets(scores, [query.tool for query in queries]))


def prefixed(prefix: str, values: dict[str, float]) -> dict[str, float]:
    """Return the values with their names prefixed as ``<prefix>/<name>``."""
    return {f"{prefix}/{name}": value for name, value in values.items()}
