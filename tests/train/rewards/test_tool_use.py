"""The reward of tool use as a term of a mixture."""

import asyncio
from typing import Any

import pytest
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.scoring.truth import GroundTruth, Step
from trellis_train.rewards.mixture import Mixture, Scored
from trellis_train.rewards.sample import Sample

ANSWER = GroundTruth(
    steps=[Step(name="find", arguments={"q": "x"})], available_tools=["find", "pay"]
).to_text()
FIND = render_tool_call("find", {"q": "x"})


def scored(response: str, answer: str = ANSWER, **options: Any) -> Scored:
    options = {"scale": "signed", **options}
    mixture = Mixture.parse([{"name": "tool_use", "options": options}])
    return asyncio.run(mixture.score(Sample(response=response, answer=answer)))


def test_the_reference_call_counts_as_correct() -> None:
    result = scored(FIND)

    assert (result.score, result.acc) == (1.0, 1.0)


def test_the_parts_of_the_reward_stand_beside_it() -> None:
    result = scored(FIND + FIND)

    assert result.score == pytest.approx(0.75)
    assert result.parts == pytest.approx(
        {
            "tool_use": 0.75,
            "tool_use_completion": 1.0,
            "tool_use_tool_f1": 1.0,
            "tool_use_efficiency": 0.8,
            "tool_use_timing": 0.8,
            "tool_use_format": 1.0,
            "tool_use_penalties": -0.2,
        }
    )


def test_bad_responses_differ_unless_the_scale_is_cut_off() -> None:
    wrong, invented = render_tool_call("pay", {}), render_tool_call("fly", {})

    assert scored(wrong).score > scored(invented).score
    assert scored(wrong, scale="display").score == scored(invented, scale="display").score == 0.0


def test_a_row_without_a_reference_of_tool_use_is_an_error_of_that_row_with_the_same_keys() -> None:
    result = scored(FIND, answer="42")

    assert "no ground truth of tool use" in result.errors["tool_use"]
    assert result.score == 0.0
    assert result.as_verl_result().keys() == scored(FIND).as_verl_result().keys()
