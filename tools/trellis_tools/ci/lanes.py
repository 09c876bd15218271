"""Runs parts side by side, as many as there are lanes and as memory allows."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from trellis_api.monitoring.machine import measure_memory

from trellis_tools.ci.runner import Part

GIB = 2**30
#: Left to the system, and below what makes Ray kill workers (95 % of the machine).
RESERVE_GIB = 2.5


def measure_room() -> float:
    """Return the GiB of memory that parts may take on this machine together."""
    return measure_memory()[1] / GIB - RESERVE_GIB


def run_in_lanes(
    parts: Sequence[Part], run: Callable[[Part], bool], *, lanes: int, room_gib: float
) -> list[bool]:
    """Run parts, at most ``lanes`` at a time; their results in the order of ``parts``.

    The parts that run together need no more than ``room_gib``; one that needs more by itself runs alone.
    A lane takes the first part that fits, so a small one may overtake a large one.
    """
    waiting = list(enumerate(parts))
    results = [False] * len(parts)
    in_use: list[float] = []
    changed = threading.Condition()

    def take() -> tuple[int, Part]:
        """Take the first part that fits, as soon as one does."""
        with changed:
            while True:
                for place, (index, part) in enumerate(waiting):
                    if not in_use or sum(in_use) + part.memory_gib <= room_gib:
                        del waiting[place]
                        in_use.append(part.memory_gib)
                        return index, part
                changed.wait()

    def run_next() -> None:
        index, part = take()
        try:
            results[index] = run(part)
        finally:
            with changed:
                in_use.remove(part.memory_gib)
                changed.notify_all()

    with ThreadPoolExecutor(lanes) as pool:
        for done in [pool.submit(run_next) for _ in parts]:
            done.result()
    return results
