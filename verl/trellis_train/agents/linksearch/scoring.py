"""What an episode earns in each mode, and the numbers that are reported of it."""

from dataclasses import dataclass
from typing import Any

from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.play import Played
from trellis_train.agents.linksearch.reward import compute_reward
from trellis_train.agents.linksearch.rubric import Rubric, handles_in
from trellis_train.agents.linksearch.tools import SCHEMAS

_KNOWN = frozenset(schema["function"]["name"] for schema in SCHEMAS)
#: An answer of a better score counts as right.
RIGHT = 0.5


@dataclass(frozen=True)
class FirstTry:
    """What the single turn of ``simple`` is judged by."""

    has_call: bool
    has_known_tool: bool
    has_run_sql: bool
    #: Of the gold handles, those in the rows of its searches.
    row_recall: float

    def parts(self) -> dict[str, float]:
        """Return the reward earned by each part; the maximum total is 1."""
        return {
            "call": 0.2 * self.has_call,
            "tool": 0.2 * self.has_known_tool,
            "sql": 0.3 * self.has_run_sql,
            # "recall" is the share itself.
            "recall_part": 0.3 * self.row_recall,
        }


@dataclass(frozen=True)
class Score:
    """The reward of an episode."""

    total: float
    #: By name, as they were added up.
    parts: dict[str, float]
    #: Which row of the table it was (``perfect`` ...), or the mode that has none.
    outcome: str


def judge(rubric: Rubric, first: FirstTry, options: Options) -> Score:
    """Compute the reward of an episode from its log."""
    if options.mode == "simple":
        parts = first.parts()
        return Score(sum(parts.values()), parts, "simple")
    if options.mode == "rollout":
        return Score(rubric.score, {}, "rollout")
    reward = compute_reward(rubric, options.weights)
    return Score(reward.total, reward.parts(), reward.outcome)


def look_at_first_try(played: Played, gold: list[str]) -> FirstTry:
    """Evaluate the calls of the first turn."""
    told = [outcome for outcome in played.told if outcome.fault != "parse"]
    searches = [call for call in played.calls if call.name == "search_profile" and call.turn == 1]
    ran = [call for call in searches if call.result.get("success")]
    found = {handle for call in ran for handle in handles_in(call.result["rows"])}
    return FirstTry(
        has_call=bool(told),
        has_known_tool=any(outcome.told.name in _KNOWN for outcome in told),
        has_run_sql=bool(ran),
        row_recall=len(found & set(gold)) / len(gold) if gold else 0.0,
    )


def report_answer(rubric: Rubric, first: FirstTry, options: Options) -> float:
    """Report how far the answer is right, 0 to 1."""
    return first.row_recall if options.mode == "simple" else rubric.score


def report(
    rubric: Rubric, first: FirstTry, score: Score, options: Options, *, tokens: int
) -> dict[str, float]:
    """Report an episode's numbers under the same names for every one: verl averages them in validation.

    ``tokens`` are those of the whole episode. ``found_turn`` is 0 where nobody was found, so that its mean
    over that of ``found`` is the mean turn of the episodes that found somebody.
    """
    is_simple = options.mode == "simple"
    value = report_answer(rubric, first, options)
    parts = dict.fromkeys(("process", "strategy", "efficiency", "penalty"), 0.0)
    return {
        "acc": float(value > RIGHT),
        "answer_score": value,
        "precision": rubric.precision,
        "recall": first.row_recall if is_simple else rubric.recall,
        "hits": float(len(rubric.correct_handles)),
        "turns": float(rubric.turns),
        "searches": float(rubric.searches),
        "reads": float(rubric.reads),
        "tokens": float(tokens),
        "found": float(rubric.turn_first_correct_found is not None),
        "found_turn": float(rubric.turn_first_correct_found or 0),
        **{name: score.parts.get(name, 0.0) for name in parts},
    }


def describe_episode(played: Played, rubric: Rubric, duration_s: float, *, tokens: int) -> dict[str, Any]:
    """Return numbers for ``agent/*``; ``first_hit_turn`` only if the searches showed a right handle."""
    first = rubric.turn_first_correct_found
    return {
        "turns": played.turns,
        "calls": len(played.told),
        "call_errors": sum(outcome.told.error is not None for outcome in played.told),
        "episode_s": duration_s,
        "answered": float(played.stop_reason == "answered"),
        "malformed": played.malformed_turns,
        "tokens": tokens,
        "sampled_tokens": rubric.response_tokens,
        **({} if first is None else {"first_hit_turn": first}),
    }
