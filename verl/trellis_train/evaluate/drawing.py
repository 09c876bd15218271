"""Which problems are measured, in which order, and the seed of each generation."""

import hashlib
import random
from collections.abc import Sequence

from trellis_train.evaluate.benchmark import Problem


def draw(problems: Sequence[Problem], limit: int | None, seed: int) -> list[Problem]:
    """Return the first ``limit`` problems of an order shuffled by the seed: 50 are among the 100."""
    return [problems[place] for place in draw_places(len(problems), limit, seed)]


def draw_places(count: int, limit: int | None, seed: int) -> list[int]:
    """Return the first ``limit`` positions of an order shuffled by the seed."""
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - a sample, not a secret
    return order[:limit]


def choose_seed(seed: int, key: str, number: int) -> int:
    """Return the seed of one generation (63 bits), independent of what else is generated."""
    digest = hashlib.sha256(f"{seed}/{number}/{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
