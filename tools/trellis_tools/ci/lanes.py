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


def sort_by_memory(parts: Sequence[Part]) -> list[tuple[int, Part]]:
    """Sort parts with their places, largest memory first; equal ones keep their order."""
    return sorted(enumerate(parts), key=lambda each: -each[1].memory_gib)


def bound_seconds(parts: Sequence[Part], *, lanes: int, room_gib: float) -> float:
    """Return the seconds that ``run_in_lanes`` takes if every part takes its whole limit."""
    waiting = [part for _, part in sort_by_memory(parts)]
    # Parts that run, by the second at which they end.
    running: list[tuple[float, Part]] = []
    now = 0.0
    while waiting or running:
        taken = sum(part.memory_gib for _, part in running)
        fitting = (part for part in waiting if not running or taken + part.memory_gib <= room_gib)
        part = next(fitting, None) if len(running) < lanes else None
        if part is not None:
            waiting.remove(part)
            running.append((now + part.limit_s, part))
        else:
            now, ended = min(running, key=lambda each: each[0])
            running.remove((now, ended))
    return now


def run_in_lanes(
    parts: Sequence[Part], run: Callable[[Part], bool], *, lanes: int, room_gib: float
) -> list[bool]:
    """Run parts, at most ``lanes`` at a time; their results in the order of ``parts``.

    The parts that run together need no more than ``room_gib``; one that needs more by itself runs alone.
    A lane takes the largest part that fits, so that large ones have the small ones beside them.
    """
    waiting = sort_by_memory(parts)
    results = [False] * len(parts)
    in_use: list[float] = []
    changed = threading.Condition()

    def take() -> tuple[int, Part]:
        """Take the largest part that fits, as soon as one does."""
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
