"""Which terms of a mixture score tricks again while a run trains, and whether that says anything.

What costs money, waits or runs code is not scored a second time. A trick's reward is then known from below:
such a term gives it its lowest value at least.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trellis_contracts.rewards import RewardTerm

from trellis_recipes.rewards import reward_kinds


class NotProbed(StrEnum):
    """Why tricks are not scored in a run."""

    #: An agent computes its reward itself.
    OWN_REWARD = "own_reward"
    #: The terms that are scored again can pay nothing.
    NOTHING_TO_EARN = "nothing_to_earn"
    #: A term that is not scored again has no lowest value.
    UNBOUNDED = "unbounded"


@dataclass(frozen=True)
class ProbePlan:
    """How tricks are scored in a run."""

    scored: tuple[RewardTerm, ...] = ()
    #: Counted at their lowest value.
    left_out: tuple[RewardTerm, ...] = ()
    #: What the terms that are left out give at least, weighted.
    floor: float = 0.0
    #: Nothing is scored where there is a reason.
    reason: NotProbed | None = None


def plan_probes(terms: Sequence[RewardTerm]) -> ProbePlan:
    """Plan the probes of a mixture; without terms the reward is an agent's own."""
    if not terms:
        return ProbePlan(reason=NotProbed.OWN_REWARD)
    kinds = reward_kinds()
    weighty = [term for term in terms if term.weight]
    slow = tuple(term for term in weighty if kinds[term.name].waits or kinds[term.name].runs_code)
    fast = tuple(term for term in weighty if term not in slow)
    least = [_bounds(term)[0] for term in slow]
    floor = sum(value for value in least if value is not None)
    reason = None
    if None in least:
        reason = NotProbed.UNBOUNDED
    elif all(most is not None and most <= 0.0 for _, most in map(_bounds, fast)):
        reason = NotProbed.NOTHING_TO_EARN
    return ProbePlan(fast, slow, floor, reason)


def _bounds(term: RewardTerm) -> tuple[float | None, float | None]:
    """Return the lowest and the highest value of a term, weighted; None where it has no bound."""
    kind = reward_kinds()[term.name]
    ends = [None if end is None else term.weight * end for end in (kind.lowest, kind.highest)]
    low, high = ends if term.weight >= 0 else ends[::-1]
    return low, high
