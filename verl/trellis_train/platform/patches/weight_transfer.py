"""Received weights alias the shared-memory bucket on a CPU (``.to("cpu")`` copies nothing)."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from trellis_train.platform.imports import require

MODULE = "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer"
Named = list[tuple[str, torch.Tensor]]


def patch(module: ModuleType) -> None:
    """Clone what ``BucketedWeightReceiver`` hands out, so that its buffer can be closed and reused."""
    require(module, "BucketedWeightReceiver")
    receiver = module.BucketedWeightReceiver
    require(receiver, "receive_weights")
    original = receiver.receive_weights

    def receive_weights(self: Any, on_bucket_received: Callable[[Named, bool], None]) -> None:
        def with_clones(weights: Named, is_last: bool) -> None:
            clones = [(name, tensor.clone()) for name, tensor in weights]
            weights.clear()  # the receiver keeps this list alive while it closes the buffer
            on_bucket_received(clones, is_last)

        original(self, with_clones)

    receiver.receive_weights = receive_weights
