"""How fast this machine multiplies matrices, measured for a moment."""

import time
from functools import lru_cache

#: Width of the measured matrices: about a tenth of a second on two cores, and past all caches.
_WIDTH, _ROUNDS = 1024, 3
#: Other programs come and go: after so long it is measured again.
_VALID_S = 600


def measure_flops() -> float:
    """Return floating-point operations per second in single precision, the fastest of three short rounds."""
    return _measure(int(time.monotonic() // _VALID_S))


@lru_cache(maxsize=1)
def _measure(_period: int) -> float:
    import numpy as np

    left = np.full((_WIDTH, _WIDTH), 0.5, dtype=np.float32)
    right, product = left.copy(), np.empty_like(left)
    seconds = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        np.matmul(left, right, out=product)
        seconds.append(time.perf_counter() - begun)
    return 2 * _WIDTH**3 / min(seconds)
