"""The phases of a step on every rank of a run, for its timeline."""

import os
from collections.abc import Sequence

import torch

from trellis_train.hooks.process_spans import Place, Span, find_place
from trellis_train.hooks.timeline import RANK_LANE, Lane


def gather_lanes(spans: Sequence[Span]) -> list[Lane]:
    """Gather the spans of all ranks on every rank (collective call); empty with a single process."""
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    if world == 1:
        return []
    found: list[tuple[Place, list[Span]]] = [(Place("", 0), [])] * world
    torch.distributed.all_gather_object(found, (find_own_place(), list(spans)))
    return [Lane(f"{RANK_LANE} {rank}", place, own) for rank, (place, own) in enumerate(found)]


def find_own_place() -> Place:
    """Find where this process runs, and the GPU that is its current one."""
    if not torch.cuda.is_available():
        return find_place()
    index = torch.cuda.current_device()
    visible = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    return find_place([visible[index] if index < len(visible) else index])
