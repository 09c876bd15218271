"""The agents' starter model after supervised training on scripted episodes, in this process."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

IGNORED = -100


def teach(
    model_dir: Path,
    rows: list[dict[str, Any]],
    out: Path,
    *,
    steps: int,
    batch: int = 32,
    learning_rate: float = 2e-3,
    seed: int = 0,
) -> list[float]:
    """Train on the assistant's turns of ``rows`` and write the model; the losses of the steps.

    AdamW, a warm-up of 5 % and a cosine to nothing, as the recipe ``sft`` does it, without its processes.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    model = AutoModelForCausalLM.from_pretrained(model_dir, attn_implementation="sdpa")
    examples = [encode(tokenizer, row) for row in rows]
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    warm_up = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, total_iters=warm_up),
            torch.optim.lr_scheduler.CosineAnnealingLR(
                optimizer, steps - warm_up, eta_min=learning_rate / 20
            ),
        ],
        [warm_up],
    )
    losses = []
    model.train()
    for ids, labels in _batches(examples, steps, batch, seed, tokenizer.pad_token_id):
        loss = _loss(model, torch.tensor(ids), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return losses


def _loss(model: Any, ids: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
    """Compute the cross-entropy of the labeled tokens; other logits are not computed."""
    from torch.nn.functional import cross_entropy

    wanted = labels[:, 1:]
    is_taught = wanted != IGNORED
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
    return cross_entropy(model.lm_head(hidden[is_taught]), wanted[is_taught])


def encode(tokenizer: Any, row: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Encode a conversation; label the assistant's own tokens, including its end of turn."""
    tools = json.loads(row["tools"]) if isinstance(row.get("tools"), str) else row.get("tools")
    text = tokenizer.apply_chat_template(row["messages"], tools=tools, tokenize=False)
    ids, labels = [], []
    opening, ending = "<|im_start|>assistant\n", "<|im_end|>"
    for number, part in enumerate(text.split(opening)):
        said, end, rest = part.partition(ending) if number else ("", "", part)
        pieces = [(opening, False), (said + end, True), (rest, False)] if number else [(rest, False)]
        for piece, is_taught in pieces:
            tokens = tokenizer.encode(piece, add_special_tokens=False)
            ids += tokens
            labels += tokens if is_taught else [IGNORED] * len(tokens)
    return ids, labels


def _batches(
    examples: list[tuple[list[int], list[int]]], steps: int, size: int, seed: int, pad: int
) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Yield batches of examples of similar length, padded on the right."""
    draw = random.Random(seed)
    waiting: list[list[tuple[list[int], list[int]]]] = []
    for _ in range(steps):
        if not waiting:
            order = sorted(draw.sample(examples, len(examples)), key=lambda example: len(example[0]))
            waiting = [order[start : start + size] for start in range(0, len(order) - size + 1, size)]
            draw.shuffle(waiting)
        chosen = waiting.pop()
        longest = max(len(ids) for ids, _ in chosen)
        yield (
            [ids + [pad] * (longest - len(ids)) for ids, _ in chosen],
            [labels + [IGNORED] * (longest - len(labels)) for _, labels in chosen],
        )
