"""Which of a step's responses a page shows: their order, the filter, and where a page ends.

Prompts, responses and trajectories are long; pages are cut from what is short of every response, so that only
those that are shown are read whole.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from trellis_api.core.pagination import InvalidCursor, decode_cursor, encode_cursor

#: No stored number is larger; databases refuse numbers beyond 64 bits.
MAX_STEP = 2**53
#: Rank of prompts without any score: behind all others.
_LAST = sys.float_info.max


class RolloutOrder(StrEnum):
    """Order of prompts; responses stay in sampling order."""

    SAMPLED = "sampled"
    WORST = "worst"
    BEST = "best"
    #: Those whose responses differ most in their scores first.
    SPREAD = "spread"


class Mark(NamedTuple):
    """What is short of a response, under the names of its columns."""

    id: int
    group: str
    score: float | None
    stop_reason: str | None
    response_tokens: int = 0
    reward_parts: Mapping[str, float | None] = {}


@dataclass(frozen=True)
class RolloutFilter:
    """Which responses to list; a response without the number is in no range of it."""

    stop_reason: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    #: Responses to this prompt only.
    group: str | None = None
    #: Length of the response.
    min_tokens: int | None = None
    max_tokens: int | None = None
    #: A part of the reward, and its range.
    part: str | None = None
    min_part: float | None = None
    max_part: float | None = None
    #: The responses in which a text was found; None where none was searched for.
    ids: frozenset[int] | None = None

    def fits(self, mark: Mark) -> bool:
        """Tell whether all given conditions hold."""
        return (
            self.stop_reason in (None, mark.stop_reason)
            and self.group in (None, mark.group)
            and (self.ids is None or mark.id in self.ids)
            and _is_within(mark.score, self.min_score, self.max_score)
            and _is_within(mark.response_tokens, self.min_tokens, self.max_tokens)
            and (
                self.part is None
                or (
                    (self.part in mark.reward_parts)
                    and _is_within(mark.reward_parts[self.part], self.min_part, self.max_part)
                )
            )
        )


def _is_within(value: float | None, low: float | None, high: float | None) -> bool:
    if low is None and high is None:
        return True
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


#: Rank of the prompt, its first response, the response. In the order of sampling what comes later does not
#: move them; in the others a late response moves its prompt, which a reader may then miss or see twice.
Key = tuple[float, int, int]
Place = tuple[Key, Mark]


@dataclass(frozen=True)
class Position:
    """Where a page goes on: behind a response of a step, which stays the same while newer steps come."""

    step: int
    key: Key

    def encode(self) -> str:
        """Encode the position as a cursor."""
        return encode_cursor(self.step, *self.key)

    @classmethod
    def decode(cls, cursor: str) -> "Position":
        """Decode a cursor; 422 for one that this API did not make."""
        step, *key = decode_cursor(cursor, parts=4)
        is_number = all(isinstance(each, int | float) and not isinstance(each, bool) for each in key)
        if not is_number or not isinstance(step, int) or not 0 <= step <= MAX_STEP:
            raise InvalidCursor("Invalid cursor.")
        rank, first, last = key
        return cls(step, (rank, first, last))


def arrange(marks: Sequence[Mark], order: RolloutOrder = RolloutOrder.SAMPLED) -> list[Place]:
    """Arrange all responses of a step in this order, those of one prompt together."""
    groups: dict[str, list[Mark]] = {}
    for mark in marks:
        groups.setdefault(mark.group, []).append(mark)
    places: list[Place] = []
    for members in groups.values():
        rank, first = _rank(members, order), min(mark.id for mark in members)
        places += [((rank, first, mark.id), mark) for mark in members]
    return sorted(places, key=lambda place: place[0])


def cut(places: Iterable[Place], *, after: Key | None, limit: int) -> tuple[list[Place], bool]:
    """Return the next page, and whether more follow.

    A page ends with a whole prompt unless one alone fills it.
    """
    ahead = [place for place in places if after is None or place[0] > after]
    if len(ahead) <= limit:
        return ahead, False
    page: list[Place] = []
    for _, members in groupby(ahead, key=lambda place: place[1].group):
        found = list(members)
        if len(page) + len(found) > limit:
            return page or found[:limit], True
        page += found
    return page, False


def _rank(members: Sequence[Mark], order: RolloutOrder) -> float:
    scores = [mark.score for mark in members if mark.score is not None]
    if order is RolloutOrder.SAMPLED:
        return 0.0
    if not scores:
        return _LAST
    if order is RolloutOrder.SPREAD:
        return min(scores) - max(scores)
    return fmean(scores) if order is RolloutOrder.WORST else -fmean(scores)
