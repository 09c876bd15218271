"""The phases of a step on every rank of a run, for its timeline."""

from collections.abc import Sequence

import torch

from trellis_train.hooks.timeline import Span


def gather_spans(spans: Sequence[Span]) -> list[list[Span]]:
    """The spans of every rank, on every rank; all of them call it. None where there is only this process."""
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    if world == 1:
        return []
    found: list[list[Span]] = [[] for _ in range(world)]
    torch.distributed.all_gather_object(found, list(spans))
    return found
