"""Symmetric InfoNCE over a batch of queries and tools."""

import torch

TEMPERATURE = 0.05


def symmetric_info_nce(
    queries: torch.Tensor,
    tools: torch.Tensor,
    targets: torch.Tensor,
    *,
    temperature: float = TEMPERATURE,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss, and the share of queries whose own tool is the nearest.

    ``queries`` (Q, d) and ``tools`` (T, d) are of length 1; ``targets`` (Q,) is each query's tool among the T
    different ones of the batch, which hold hard negatives besides. From query to tool all T stand against
    each other, from tool to query the Q queries. Queries that ask for the same tool are no negatives of each
    other (van den Oord et al. 2018, https://arxiv.org/abs/1807.03748; both directions as in CLIP, Radford et
    al. 2021, https://arxiv.org/abs/2103.00020).
    """
    similarity = queries @ tools.T / temperature
    to_tool = torch.nn.functional.cross_entropy(similarity, targets)
    # One row for each query: its tool against all queries of the batch.
    of_own_tool = similarity[:, targets].T
    own = torch.arange(len(targets), device=targets.device)
    twins = (targets[:, None] == targets[None, :]) & (own[:, None] != own[None, :])
    to_query = torch.nn.functional.cross_entropy(of_own_tool.masked_fill(twins, float("-inf")), own)
    accuracy = (similarity.argmax(dim=1) == targets).float().mean()
    return (to_tool + to_query) / 2, accuracy
