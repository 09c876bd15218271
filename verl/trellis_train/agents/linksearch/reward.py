"""The reward of an episode: outcome first, shaped within bands that do not overlap.

A perfect answer earns 3; another answer -0.2 to 2.8; none -1 to -0.25; an end by calls that cannot be
understood -2 to -1.05. So no shaping outranks an answer, and an answer never a perfect one.
"""

from dataclasses import dataclass, fields

from trellis_train.agents.linksearch.rubric import FORMAT_FAILURES, Rubric

PERFECT, PERFECT_TURNS = 3.0, 8
_ANSWERED = (-0.2, 2.8)
_UNANSWERED = (-1.0, -0.25)
_MALFORMED = (-2.0, -1.05)
_FAILURE_BASE = {"parse": -1.5, "name": -1.4, "args": -1.3}
_UNANSWERED_BASE = -0.6


@dataclass(frozen=True)
class RewardWeights:
    """What each part is worth; the bands hold whatever the weights are."""

    #: Of the score of an answer.
    reward_score: float = 1.5
    #: For finding a right handle and for reading one, all of it in the first turn.
    reward_found: float = 0.10
    reward_read: float = 0.05
    #: For having read all that was rightly returned.
    reward_returned_read: float = 0.20
    #: For each of the three habits of a good search, once.
    reward_strategy: float = 0.05
    reward_efficiency: float = 0.10
    #: For each call made twice, each read in vain, and each handle that was never seen.
    penalty_needless: float = 0.10
    penalty_zero_result: float = 0.05
    penalty_sql_error: float = 0.08
    penalty_denied: float = 0.15
    penalty_malformed: float = 0.25

    def find_negative(self) -> str | None:
        """Return the name of a negative weight, which would reward a mistake; None if there is none."""
        return next((each.name for each in fields(self) if not getattr(self, each.name) >= 0), None)


DEFAULTS = RewardWeights()


@dataclass(frozen=True)
class Reward:
    """The reward and what it is made of."""

    total: float
    outcome: str
    process: float
    strategy: float
    efficiency: float
    penalty: float

    def parts(self) -> dict[str, float]:
        """Return the parts by name, for the log."""
        return {
            "process": self.process,
            "strategy": self.strategy,
            "efficiency": self.efficiency,
            "penalty": self.penalty,
        }


def compute_reward(rubric: Rubric, weights: RewardWeights = DEFAULTS) -> Reward:
    """Compute the reward of an episode from its rubric and the weights alone."""
    process, strategy = process_part(rubric, weights), strategy_part(rubric, weights)
    efficiency, penalty = efficiency_part(rubric, weights), penalty_part(rubric, weights)
    shaping = process + strategy - penalty
    if rubric.stop_reason in FORMAT_FAILURES:
        outcome, total = "malformed", _clip(_FAILURE_BASE[rubric.stop_reason] + shaping, _MALFORMED)
    elif not rubric.predicted_handles:
        outcome, total = "unanswered", _clip(_UNANSWERED_BASE + shaping, _UNANSWERED)
    elif is_perfect(rubric):
        outcome, total = "perfect", PERFECT
    else:
        outcome, total = (
            "answered",
            _clip(weights.reward_score * rubric.score + shaping + efficiency, _ANSWERED),
        )
    return Reward(total, outcome, process, strategy, efficiency, penalty)


def is_perfect(rubric: Rubric) -> bool:
    """Tell whether exactly the right people were found, in at most eight turns without a wasted call."""
    slips = (
        rubric.repeated_searches + rubric.repeated_reads + rubric.invalid_reads + rubric.sql_errors
        + rubric.denied_searches + rubric.malformed_turns
    )  # fmt: skip
    return rubric.score == 1.0 and slips == 0 and rubric.turns <= PERFECT_TURNS


def process_part(rubric: Rubric, weights: RewardWeights = DEFAULTS) -> float:
    """Reward finding somebody who is asked for, reading the profile, and returning it; at most 0.35."""
    found, read = rubric.turn_first_correct_found, rubric.turn_first_correct_read
    part = 0.0 if found is None else weights.reward_found * _earliness(found, rubric.max_turns)
    part += 0.0 if read is None else weights.reward_read * _earliness(read, rubric.max_turns)
    share = rubric.returned_gold_read / rubric.findable if rubric.findable else 0.0
    most = weights.reward_found + weights.reward_read + weights.reward_returned_read
    # Rounded: a sum of decimals is not quite the decimal.
    return min(round(most, 9), part + weights.reward_returned_read * share)


def strategy_part(rubric: Rubric, weights: RewardWeights = DEFAULTS) -> float:
    """Reward broadening after no results, narrowing after many, and reading new results; at most 0.15."""
    flags = (
        rubric.broadened_search_after_zero, rubric.narrowed_search_after_many, rubric.read_after_good_search,
    )  # fmt: skip
    return round(weights.reward_strategy * sum(flags), 9)


def efficiency_part(rubric: Rubric, weights: RewardWeights = DEFAULTS) -> float:
    """Reward a good answer in few turns; at most 0.1."""
    return weights.reward_efficiency * rubric.score * (1 - rubric.turns / rubric.max_turns)


def penalty_part(rubric: Rubric, weights: RewardWeights = DEFAULTS) -> float:
    """Return the penalty for repeated, useless or wrong calls and for handles never seen; at most 1."""
    needless = (
        rubric.repeated_searches + rubric.repeated_reads + rubric.invalid_reads + rubric.unseen_returned
    )  # fmt: skip
    return min(
        1.0,
        weights.penalty_needless * needless
        + weights.penalty_zero_result * rubric.zero_result_searches
        + weights.penalty_sql_error * rubric.sql_errors
        + weights.penalty_denied * rubric.denied_searches
        + weights.penalty_malformed * rubric.malformed_turns,
    )


def _earliness(turn: int, max_turns: int) -> float:
    """Return 1 for the first turn and linearly less for later ones."""
    return 1 - (turn - 1) / max_turns


def _clip(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
