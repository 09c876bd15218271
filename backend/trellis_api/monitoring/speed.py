"""How fast this machine multiplies matrices, measured for a moment."""

import threading
import time

#: Width of the measured matrices: about a tenth of a second on two cores, and past all caches.
_WIDTH, _ROUNDS = 1024, 3
#: So long a speed is taken for the machine's; then it may have been measured beside other work.
_VALID_S = 600


class MachineSpeed:
    """The fastest speed that was seen: what a machine does beside other work tells little of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured_at: float | None = None
        self._fastest = 0.0

    def measure(self) -> float:
        """Return floating-point operations per second in single precision; one caller at a time measures."""
        with self._lock:
            now = time.monotonic()
            if self._measured_at is None or now - self._measured_at > _VALID_S:
                self._measured_at = now
                self._fastest = max(self._fastest, _measure())
            return self._fastest


_speed = MachineSpeed()


def measure_flops() -> float:
    """Return this machine's speed in floating-point operations per second, in single precision."""
    return _speed.measure()


def _measure() -> float:
    import numpy as np

    left = np.full((_WIDTH, _WIDTH), 0.5, dtype=np.float32)
    right, product = left.copy(), np.empty_like(left)
    seconds = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        np.matmul(left, right, out=product)
        seconds.append(time.perf_counter() - begun)
    return 2 * _WIDTH**3 / min(seconds)
