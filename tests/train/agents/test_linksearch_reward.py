"""What an episode of Link Search earns: counted by hand, and by its bounds."""

import random
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from trellis_train.agents.linksearch.options import BadOptions, Options
from trellis_train.agents.linksearch.reward import (
    RewardWeights,
    compute_reward,
    efficiency_part,
    penalty_part,
    process_part,
    strategy_part,
)
from trellis_train.agents.linksearch.rubric import Call, Episode, Rubric, StopReason, assess

BANDS = {
    "perfect": (3.0, 3.0),
    "answered": (-0.2, 2.8),
    "unanswered": (-1.0, -0.25),
    "malformed": (-2.0, -1.05),
}
SLIPS = (
    "repeated_searches",
    "repeated_reads",
    "invalid_reads",
    "unseen_returned",
    "zero_result_searches",
    "sql_errors",
    "denied_searches",
    "malformed_turns",
)


def search(
    turn: int, *handles: str, sql: str = "", rows: int | None = None, error: str | None = None
) -> Call:
    found = [{"linkedin_handle": handle} for handle in handles]
    found += [{"linkedin_handle": f"other-{n}"} for n in range((rows or len(handles)) - len(handles))]
    result = (
        {"success": True, "rows": found} if error is None else {"success": False, "error": {"code": error}}
    )
    return Call(turn, "search_profile", {"sql": sql or f"select {turn}"}, result)


def read(turn: int, handle: str, success: bool = True) -> Call:
    return Call(turn, "read_profile", {"linkedin_handle": handle}, {"success": success})


def episode(
    *calls: Call, predicted: list[str] | None, gold: tuple[str, ...] = ("ada", "bo"), **other: Any
) -> Rubric:
    facts: dict[str, Any] = {
        "stop_reason": "answered", "turns": 4, "max_turns": 15, "max_profiles": 10, **other,
    }  # fmt: skip
    return assess(Episode(calls=calls, predicted=predicted, gold=gold, **facts))


def test_a_perfect_episode() -> None:
    rubric = episode(search(1, "ada", "bo"), read(2, "ada"), read(3, "@BO"), predicted=["ada", "Bo"])

    assert (rubric.score, rubric.precision, rubric.recall, rubric.acc) == (1, 1, 1, True)
    assert (rubric.turn_first_correct_found, rubric.turn_first_correct_read) == (1, 2)
    assert rubric.read_after_good_search
    assert compute_reward(rubric).total == 3.0


@pytest.mark.parametrize("slip", ["repeated_searches", "sql_errors", "denied_searches", "malformed_turns"])
def test_a_slip_is_not_perfect(slip: str) -> None:
    rubric = episode(search(1, "ada", "bo"), predicted=["ada", "bo"])

    assert compute_reward(rubric).total == 3.0
    assert compute_reward(replace(rubric, **{slip: 1})).total <= 2.8
    assert compute_reward(replace(rubric, turns=9)).total <= 2.8


def test_the_parts_by_hand() -> None:
    calls = [
        search(1),
        search(2, "ada", rows=30),
        search(3, "ada", rows=5),
        read(3, "ada"),
        search(4, "ada", rows=5, sql="SELECT  3"),
        search(5, error="DENIED"),
        search(5, error="SYNTAX"),
        read(6, "nobody", success=False),
        read(6, "ada"),
    ]
    rubric = episode(*calls, predicted=["ada", "never-seen"], turns=7)

    assert (rubric.searches, rubric.unique_searches, rubric.repeated_searches) == (6, 4, 2)
    assert (rubric.zero_result_searches, rubric.searches_with_results) == (1, 3)
    assert (rubric.reads, rubric.unique_reads, rubric.repeated_reads, rubric.invalid_reads) == (3, 2, 1, 1)
    assert (rubric.denied_searches, rubric.sql_errors, rubric.unseen_returned) == (1, 1, 1)
    assert (rubric.broadened_search_after_zero, rubric.narrowed_search_after_many) == (True, True)
    assert rubric.score == pytest.approx(0.5)
    assert not rubric.acc
    assert process_part(rubric) == pytest.approx(0.10 * 14 / 15 + 0.05 * 13 / 15 + 0.20 / 2)
    assert strategy_part(rubric) == pytest.approx(0.15)
    assert efficiency_part(rubric) == pytest.approx(0.10 * 0.5 * 8 / 15)
    assert penalty_part(rubric) == pytest.approx(0.10 * (2 + 1 + 1 + 1) + 0.05 + 0.08 + 0.15)
    reward = compute_reward(rubric)
    expected = 0.75 + process_part(rubric) + 0.15 + efficiency_part(rubric) - penalty_part(rubric)
    assert (reward.outcome, reward.total) == ("answered", pytest.approx(expected))


@pytest.mark.parametrize(
    ("predicted", "reason", "outcome"),
    [
        (["ada"], "answered", "answered"),
        ([], "answered", "unanswered"),
        (None, "turns", "unanswered"),
        (None, "context", "unanswered"),
        (None, "parse", "malformed"),
        (None, "name", "malformed"),
        (None, "args", "malformed"),
    ],
)
def test_how_it_ended_decides_the_band(predicted: list[str] | None, reason: StopReason, outcome: str) -> None:
    rubric = episode(search(1, "ada"), predicted=predicted, stop_reason=reason)

    assert compute_reward(rubric).outcome == outcome


def test_more_gold_than_may_be_returned_is_no_fault_of_the_agent() -> None:
    gold = tuple(f"h{n}" for n in range(12))

    rubric = episode(search(1, *gold), predicted=list(gold[:10]), gold=gold)

    assert (rubric.findable, rubric.score) == (10, 1.0)


@pytest.mark.parametrize(
    ("weight", "part"),
    [
        ("reward_found", process_part),
        ("reward_read", process_part),
        ("reward_returned_read", process_part),
        ("reward_strategy", strategy_part),
        ("reward_efficiency", efficiency_part),
        ("penalty_needless", penalty_part),
        ("penalty_zero_result", penalty_part),
        ("penalty_sql_error", penalty_part),
        ("penalty_denied", penalty_part),
        ("penalty_malformed", penalty_part),
    ],
)
def test_each_weight_is_that_of_its_part(weight: str, part: Any) -> None:
    calls = [
        search(1), search(2, "ada"), read(3, "ada"), search(4, error="DENIED"), search(5, error="SYNTAX"),
        read(6, "ada"),
    ]  # fmt: skip
    rubric = episode(*calls, predicted=["ada"], turns=7, malformed_turns=1)
    usual = RewardWeights()
    double = replace(usual, **{weight: 2 * getattr(usual, weight)})
    none = replace(usual, **{weight: 0.0})

    share = part(rubric, usual) - part(rubric, none)

    assert share > 0
    assert part(rubric, double) == pytest.approx(part(rubric, usual) + share)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"penalty_denied": -0.1}, "penalty_denied must be at least 0"),
        ({"reward_found": float("nan")}, "reward_found must be at least 0"),
        ({"reward_found": "much"}, "reward_found must be a number"),
        ({"reward_fund": 1.0}, "unknown link search option: reward_fund"),
    ],
)
def test_a_weight_that_cannot_be_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadOptions, match=said):
        Options.parse(given)


def draw_rubric(draw: random.Random) -> Rubric:
    """Any rubric that the counting could give, and many that it could not."""
    findable, predicted = draw.randint(1, 10), draw.randint(0, 10)
    correct = draw.randint(0, min(findable, predicted))
    slips = (0,) if draw.random() < 0.3 else (0, 0, 1, 2, 12)
    turns = [None, *range(1, 16)]
    return Rubric(
        stop_reason=draw.choice(get_args(StopReason)),
        max_turns=15,
        findable=findable,
        correct_handles=[f"g{n}" for n in range(correct)],
        predicted_handles=[f"g{n}" for n in range(predicted)],
        gold_handles=[f"g{n}" for n in range(findable)],
        score=2 * correct / (predicted + findable),
        precision=0.0,
        recall=0.0,
        acc=False,
        turns=draw.randint(1, 15),
        attempted_answer=predicted > 0,
        ran_out_of_turns=False,
        returned_gold_read=draw.randint(0, correct),
        broadened_search_after_zero=draw.random() < 0.5,
        narrowed_search_after_many=draw.random() < 0.5,
        read_after_good_search=draw.random() < 0.5,
        turn_first_correct_found=draw.choice(turns),
        turn_first_correct_read=draw.choice(turns),
        **{slip: draw.choice(slips) for slip in SLIPS},
    )


def draw_weights(draw: random.Random) -> RewardWeights:
    return RewardWeights(
        **{each.name: draw.choice([0.0, each.default, 10.0]) for each in fields(RewardWeights)}
    )


@pytest.mark.parametrize("has_own_weights", [False, True])
def test_bands_hold_and_no_slip_ever_pays(has_own_weights: bool) -> None:
    draw, outcomes = random.Random(5), set[str]()

    for _ in range(10_000):
        rubric = draw_rubric(draw)
        weights = draw_weights(draw) if has_own_weights else RewardWeights()
        reward = compute_reward(rubric, weights)
        low, high = BANDS[reward.outcome]
        assert low <= reward.total <= high, rubric
        outcomes.add(reward.outcome)
        for slip in SLIPS:
            worse = replace(rubric, **{slip: getattr(rubric, slip) + 1})
            assert compute_reward(worse, weights).total <= reward.total, (slip, rubric)

    assert outcomes == set(BANDS)
