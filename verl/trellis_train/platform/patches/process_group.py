"""verl asks for the backends ``cpu:gloo,<device>:<backend>``, which names the CPU twice on a CPU."""

from functools import wraps
from typing import Any

import torch.distributed

#: What `verl.utils.distributed` composes on this platform; torch rejects it as a duplicate.
DUPLICATE = "cpu:gloo,cpu:gloo"


def install() -> None:
    """Make ``torch.distributed.init_process_group`` accept verl's duplicate backend string."""
    original = torch.distributed.init_process_group

    @wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return original("cpu:gloo" if backend == DUPLICATE else backend, *args, **kwargs)

    torch.distributed.init_process_group = init_process_group
