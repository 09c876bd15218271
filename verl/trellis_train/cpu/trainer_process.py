"""How the processes of a run on a CPU wait for their threads, and how the one that trains keeps its memory.

The processes take turns on the cores and wait asleep (``OMP_WAIT_POLICY=PASSIVE``). A trainer's passes are
thousands of short operations, and its threads meet after each of them: asleep they are woken each time, which
costs as much as many of the operations. So they spin for a tenth of a millisecond before they sleep; all
processes do, since libgomp reads it once and they are forked from one (``engines.forking``). And glibc gives
the memory of a pass back to the kernel after it, which clears every page again for the next one; the
trainer's process keeps it (docs/adr/0019-trainers-on-a-cpu.md).
"""

from collections.abc import Mapping
from typing import Any

#: What libgomp reads when it is loaded (https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html).
THREADS: Mapping[str, str] = {"GOMP_SPINCOUNT": "10000"}
#: What glibc reads when a process starts (mallopt(3)).
MEMORY: Mapping[str, str] = {
    # Threads' own arenas hold blocks of 64 MiB at most.
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}


def with_settings(group: type[Any], environment: Mapping[str, str]) -> type[Any]:
    """Wrap verl's group of workers to start its processes with the settings of memory."""
    settings = {name: value for name, value in MEMORY.items() if name not in environment}

    class TrainersOnACpu(group):
        def __init__(self, *args: Any, worker_env: Mapping[str, str] | None = None, **kwargs: Any) -> None:
            super().__init__(*args, worker_env={**settings, **(worker_env or {})}, **kwargs)

    return TrainersOnACpu
