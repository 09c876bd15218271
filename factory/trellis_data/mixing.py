"""Spreads 64-bit hashes evenly: the last steps of MurmurHash3, on arrays."""

import numpy as np

_SHIFT = np.uint64(33)


def mix(values: np.ndarray) -> np.ndarray:
    """Mix hashes (uint64) so that any part of their bits can be used; different ones stay different."""
    mixed = values ^ (values >> _SHIFT)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> _SHIFT
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> _SHIFT
    return np.asarray(mixed)
