"""Without flash attention's kernels verl takes the log-probability of one token at a time, to save memory.

On packed logits that is a kernel launch and a node of the backward graph for every token,
which takes longer than the rest of a small model's update. The same formula over some rows
at a time needs as little memory.
"""

import torch

#: Elements of the logits that are worked on at a time (16 MiB in single precision).
MAX_ELEMENTS = 4 * 1024 * 1024


def rows_at_a_time(vocabulary: int) -> int:
    """Return how many rows of logits are processed at a time."""
    return max(1, MAX_ELEMENTS // vocabulary)


def token_log_probs(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Compute log-probabilities of ``labels`` (...) under ``logits`` (..., vocabulary), as verl does."""
    vocabulary = logits.shape[-1]
    rows = logits.reshape(-1, vocabulary)
    chosen = labels.reshape(-1, 1)
    size = rows_at_a_time(vocabulary)
    if logits.dtype in (torch.float32, torch.float64):
        normalizers = torch.cat([torch.logsumexp(part, dim=-1) for part in rows.split(size)])
        found = rows.gather(-1, chosen).squeeze(-1) - normalizers
    else:
        # The difference of two logits loses too much in half precision.
        parts = zip(rows.split(size), chosen.split(size), strict=True)
        found = torch.cat([part.log_softmax(dim=-1).gather(-1, label).squeeze(-1) for part, label in parts])
    return found.view(labels.shape)
