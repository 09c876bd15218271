"""What holds of every tool-use reward, and what is told of it in words."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.scoring.components import Trace, holds_answer, longest_common
from trellis_train.agents.tooluse.scoring.reward import score, write_reference
from trellis_train.agents.tooluse.scoring.settings import (
    PENALTIES,
    WEIGHTS,
    BadRewardSettings,
    RewardSettings,
)
from trellis_train.agents.tooluse.scoring.truth import BadTruth, GroundTruth, Step

NAMES = "abcdef"
steps = st.builds(
    lambda name, x: Step(name=name, arguments={"x": x}), st.sampled_from(NAMES), st.integers(0, 2)
)
truths = st.builds(
    GroundTruth,
    steps=st.lists(steps, max_size=5),
    answer=st.sampled_from([None, "42"]),
    available_tools=st.sampled_from([None, list("abcd")]),
)
pieces = st.one_of(
    steps.map(lambda step: render_tool_call(step.name, step.arguments)),
    st.sampled_from(["42", "<tool_call>", "</tool_call>", "<tool_call>{</tool_call>", "a(1)", "</think>"]),
    st.text(max_size=12),
)
texts = st.lists(pieces, max_size=8).map("\n".join)
traces = st.one_of(st.none(), st.builds(Trace, st.lists(st.booleans(), max_size=8).map(tuple), st.booleans()))


@given(texts, truths, traces)
def test_any_text_is_scored_within_the_bounds(text: str, truth: GroundTruth, trace: Trace | None) -> None:
    reward = score(text, truth, trace)

    assert -1.0 <= reward.signed <= 1.0
    assert 0.0 <= reward.total <= 1.0
    assert all(0.0 <= value <= 1.0 for value in reward.components.values()), reward.components
    assert reward.feedback("en")
    assert reward.feedback("zh")


@given(truths)
def test_the_reference_earns_everything_and_nothing_earns_more(truth: GroundTruth) -> None:
    reward = score(write_reference(truth), truth)

    # A reference that makes the very same call again is a sequence of its own, with no duplicate in it.
    assert reward.unclipped == 1.0
    assert reward.penalties == {}


@given(st.lists(steps, min_size=1, max_size=6), truths, st.lists(st.booleans(), max_size=12), st.data())
def test_making_a_call_again_never_pays(
    made: list[Step], truth: GroundTruth, outcomes: list[bool], data: st.DataObject
) -> None:
    again = data.draw(st.sampled_from(made))
    # As often as the reference makes it, so that once more is a duplicate.
    made = made + [again] * (truth.steps.count(again) - made.count(again))
    text = "".join(render_tool_call(step.name, step.arguments) for step in made)
    longer = text + render_tool_call(again.name, again.arguments)

    for trace in (None, Trace(tuple(outcomes)), Trace(tuple(outcomes) + (True,) * 12)):
        assert score(longer, truth, trace).unclipped <= score(text, truth, trace).unclipped + 1e-12


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True), st.randoms())
def test_no_order_is_better_than_that_of_the_reference(names: list[str], random: object) -> None:
    truth = GroundTruth(steps=[Step(name=name) for name in names])
    shuffled = sorted(names, key=lambda _: random.random())  # type: ignore[attr-defined]
    text = "".join(render_tool_call(name, {}) for name in shuffled)

    reward = score(text, truth)

    assert reward.components["timing"] == pytest.approx(longest_common(shuffled, names) / len(names))
    assert (reward.signed == 1.0) == (shuffled == names)


def test_bad_responses_differ_on_the_scale_that_trains() -> None:
    truth = GroundTruth(steps=[Step(name="a")], available_tools=["a", "b"])
    wrong = score(render_tool_call("b", {}), truth)
    invented = score(render_tool_call("z", {}), truth)

    assert wrong.total == invented.total == 0.0
    assert wrong.signed > invented.signed


def test_feedback_names_what_is_wrong_in_both_languages() -> None:
    truth = GroundTruth(
        steps=[Step(name="find"), Step(name="book")], answer="done", available_tools=["find", "pay"]
    )
    text = render_tool_call("pay", {}) + render_tool_call("find", {}) * 2 + render_tool_call("fly", {})

    reward = score(text, truth)

    assert reward.feedback("en") == (
        "Not called: book. Called without need: pay. There is no tool fly. "
        "Calls that repeat an earlier one: 1. "
        "Calls made: 4; 2 would do. The answer does not hold: done."
    )
    assert "未调用：book" in reward.feedback("zh")
    assert score(write_reference(truth), truth).feedback() == (
        "All required tools were called, in the right order, and nothing else."
    )


@pytest.mark.parametrize(
    ("prose", "answer", "is_there"),
    [
        ("It is 7 km.", "7 km", True),
        ("It is 17.", "7", False),
        ("It is 7.5", "7", False),
        ("It is 3.7", "7", False),
        ("答案是42。", "42", True),
        ("BERLIN it is", "Berlin", True),
        ("anything", "", False),
    ],
)
def test_an_answer_must_stand_on_its_own(prose: str, answer: str, is_there: bool) -> None:
    assert holds_answer(prose, answer) is is_there


@pytest.mark.parametrize("text", ["", "{", "[]", '{"steps": [{"name": ""}]}', '{"step": []}', '{"steps": 3}'])
def test_a_reference_that_is_none_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadTruth, match="the reference is not a valid tool-use ground truth"):
        GroundTruth.parse(text)


def test_a_reference_survives_its_text() -> None:
    truth = GroundTruth(steps=[Step(name="天气", arguments={"city": "柏林"})], result="晴", max_steps=3)

    assert GroundTruth.parse(truth.to_text()) == truth


def test_weights_and_penalties_can_be_chosen_and_count_as_shares() -> None:
    truth = GroundTruth(steps=[Step(name="find")], available_tools=["find", "book"])
    text = render_tool_call("book", {})
    given = RewardSettings.parse({"tool_accuracy": 3, "format_compliance": 1}, {"wrong_tool": -0.9})
    only = RewardSettings.parse(dict.fromkeys(WEIGHTS, 0) | {"format": 2}, dict.fromkeys(PENALTIES, 0))

    assert given.weights["tool_f1"] == pytest.approx(3 / (3 + 1 + 0.4 + 0.15 + 0.1))
    assert score(text, truth, settings=given).penalties == {"wrong_tool": -0.9}
    assert score(text, truth, settings=only).signed == 1.0
    assert RewardSettings.parse() == RewardSettings()


@pytest.mark.parametrize(
    ("weights", "penalties", "said"),
    [
        ({"speed": 1}, {}, "unknown weight speed; choose from completion"),
        ({"format": -1}, {}, "weight of format is -1; it must not be negative"),
        ({}, {"timeout": 0.5}, "penalty timeout is 0.5; it must not be positive"),
        ({}, {"timeout": "much"}, "not a number"),
        (dict.fromkeys(WEIGHTS, 0), {}, "all weights are 0"),
    ],
)
def test_settings_of_the_reward_that_cannot_be_are_refused(
    weights: dict[str, Any], penalties: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadRewardSettings, match=re.escape(said)):
        RewardSettings.parse(weights, penalties)
