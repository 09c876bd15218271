"""How the process that trains on a CPU waits for its threads and keeps its memory.

The engine's processes take turns on the cores and wait asleep (``OMP_WAIT_POLICY=PASSIVE``). A trainer's
passes are thousands of short operations, and its threads meet after each of them: asleep they are woken each
time, which costs as much as many of the operations. So the trainer's, and no other's, spin for a tenth of a
millisecond before they sleep. And glibc gives the memory of a pass back to the kernel after it, which clears
every page again for the next one; the trainer's process keeps it (docs/adr/0019-trainers-on-a-cpu.md).
"""

from collections.abc import Mapping
from typing import Any

#: Settings that libgomp and glibc read when a process starts
#: (https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html, mallopt(3)).
SETTINGS: Mapping[str, str] = {
    "GOMP_SPINCOUNT": "10000",
    # Threads' own arenas hold blocks of 64 MiB at most.
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}


def choose_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings but for those that ``environment`` has itself."""
    return {name: value for name, value in SETTINGS.items() if name not in environment}


def with_settings(group: type[Any], environment: Mapping[str, str]) -> type[Any]:
    """verl's group of workers, whose processes start with :func:`choose_settings`."""
    settings = choose_settings(environment)

    class TrainersOnACpu(group):
        def __init__(self, *args: Any, worker_env: Mapping[str, str] | None = None, **kwargs: Any) -> None:
            super().__init__(*args, worker_env={**settings, **(worker_env or {})}, **kwargs)

    return TrainersOnACpu
