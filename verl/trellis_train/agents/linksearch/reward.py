"""The reward of an episode: outcome first, shaped within bands that do not overlap.

A perfect answer earns 3; another answer -0.2 to 2.8; none -1 to -0.25; an end by calls that cannot be
understood -2 to -1.05. So no shaping outranks an answer, and an answer never a perfect one.
"""

from dataclasses import dataclass

from trellis_train.agents.linksearch.rubric import FORMAT_FAILURES, Rubric

PERFECT, PERFECT_TURNS = 3.0, 8
_ANSWERED = (-0.2, 2.8)
_UNANSWERED = (-1.0, -0.25)
_MALFORMED = (-2.0, -1.05)
_FAILURE_BASE = {"parse": -1.5, "name": -1.4, "args": -1.3}
_UNANSWERED_BASE = -0.6


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
        """By name, for the log."""
        return {
            "process": self.process,
            "strategy": self.strategy,
            "efficiency": self.efficiency,
            "penalty": self.penalty,
        }


def compute_reward(rubric: Rubric) -> Reward:
    """The reward of an episode from its rubric alone."""
    process, strategy = process_part(rubric), strategy_part(rubric)
    efficiency, penalty = efficiency_part(rubric), penalty_part(rubric)
    shaping = process + strategy - penalty
    if rubric.stop_reason in FORMAT_FAILURES:
        outcome, total = "malformed", _clip(_FAILURE_BASE[rubric.stop_reason] + shaping, _MALFORMED)
    elif not rubric.predicted_handles:
        outcome, total = "unanswered", _clip(_UNANSWERED_BASE + shaping, _UNANSWERED)
    elif is_perfect(rubric):
        outcome, total = "perfect", PERFECT
    else:
        outcome, total = "answered", _clip(1.5 * rubric.score + shaping + efficiency, _ANSWERED)
    return Reward(total, outcome, process, strategy, efficiency, penalty)


def is_perfect(rubric: Rubric) -> bool:
    """Everybody and nobody else, at most eight turns, no call twice and none in vain."""
    slips = (
        rubric.repeated_searches + rubric.repeated_reads + rubric.invalid_reads + rubric.sql_errors
        + rubric.denied_searches + rubric.malformed_turns
    )  # fmt: skip
    return rubric.score == 1.0 and slips == 0 and rubric.turns <= PERFECT_TURNS


def process_part(rubric: Rubric) -> float:
    """For finding somebody who is asked for, reading the profile, and returning what was read; to 0.35."""
    found, read = rubric.turn_first_correct_found, rubric.turn_first_correct_read
    part = 0.0 if found is None else 0.10 * _earliness(found, rubric.max_turns)
    part += 0.0 if read is None else 0.05 * _earliness(read, rubric.max_turns)
    part += 0.20 * rubric.returned_gold_read / rubric.findable if rubric.findable else 0.0
    return min(0.35, part)


def strategy_part(rubric: Rubric) -> float:
    """For broadening after nothing, narrowing after much, and reading what was just found; to 0.15."""
    flags = (
        rubric.broadened_search_after_zero, rubric.narrowed_search_after_many, rubric.read_after_good_search,
    )  # fmt: skip
    return min(0.15, 0.05 * sum(flags))


def efficiency_part(rubric: Rubric) -> float:
    """For a good answer in few turns; to 0.1."""
    return 0.10 * rubric.score * (1 - rubric.turns / rubric.max_turns)


def penalty_part(rubric: Rubric) -> float:
    """For calls made twice, in vain or wrongly, and for handles that were never seen; to 1."""
    idle = (
        rubric.repeated_searches + rubric.repeated_reads + rubric.invalid_reads + rubric.unseen_returned
    )  # fmt: skip
    return min(
        1.0,
        0.10 * idle
        + 0.05 * rubric.zero_result_searches
        + 0.08 * rubric.sql_errors
        + 0.15 * rubric.denied_searches
        + 0.25 * rubric.malformed_turns,
    )


def _earliness(turn: int, max_turns: int) -> float:
    """1 in the first turn, falling evenly."""
    return 1 - (turn - 1) / max_turns


def _clip(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
