"""What an operator asks that cannot score by itself: a model behind an endpoint, or anything like it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Pair(NamedTuple):
    """What was asked and what was answered."""

    prompt: str
    answer: str


class Verdict(NamedTuple):
    """A score from 0 to 1, or why there is none: a code such as ``no_grade``."""

    score: float | None
    problem: str | None = None


class Scorer(Protocol):
    """Scores answers. It is sent to other processes, so it opens what it needs at its first use."""

    def score(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Score the pairs; return one verdict each, in order. Raises ``OperatorProblem`` if impossible."""
        ...
