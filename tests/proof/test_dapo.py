"""DAPO, run for real: uniform groups are replaced, long responses pay, and held-out accuracy rises."""

import math

import pytest
from trellis_testing.engine_runs import EngineRun
from trellis_testing.proof_report import report_proof

from .reinforcement import (
    REQUIRED_ERRORS,
    REQUIRED_GAIN,
    STEPS,
    VALIDATED,
    ReinforcementRuns,
    held_out_accuracy,
    read_responses,
    sampling_of,
    scores_by_prompt,
)

pytestmark = [pytest.mark.proves("dapo"), pytest.mark.training, pytest.mark.timeout(1800)]

#: Of at most 16 tokens these last ones cost: more than 3 tokens, when an answer has 2 or 3.
OVERLONG_BUFFER = 13


@pytest.fixture(scope="module")
def control(reinforcement: ReinforcementRuns) -> EngineRun:
    return reinforcement.control()


@pytest.fixture(scope="module")
def run(reinforcement: ReinforcementRuns) -> EngineRun:
    return reinforcement.run("dapo", "dapo", validate=True, overlong_buffer=OVERLONG_BUFFER, **VALIDATED)


def test_training_raises_the_accuracy_on_prompts_held_out(run: EngineRun, control: EngineRun) -> None:
    """The prompts that it keeps are chosen by their rewards, so these are not what is compared."""
    assert sampling_of(run) == sampling_of(control)

    before, after = held_out_accuracy(control), held_out_accuracy(run)

    assert run.spec.validation_data is not None
    responses = run.spec.validation_data.row_count * VALIDATED["validation_samples"]
    error = math.sqrt((before * (1 - before) + after * (1 - after)) / responses)
    report_proof(
        "dapo",
        measure="held-out accuracy",
        control=before,
        trained=after,
        error=error,
        seconds=run.seconds,
    )
    assert after - before > max(REQUIRED_ERRORS * error, REQUIRED_GAIN)


def test_prompts_whose_responses_fare_alike_are_replaced(run: EngineRun, control: EngineRun) -> None:
    """At the first step the control shows which of the same prompts have nothing to teach."""
    same_prompts = scores_by_prompt(control, 1)
    uniform = {prompt for prompt, scores in same_prompts.items() if len(set(scores)) == 1}
    kept = set(scores_by_prompt(run, 1))

    assert uniform
    assert not kept & uniform
    assert len(kept) == len(same_prompts), "the step was not filled up"
    assert kept - same_prompts.keys(), "nothing took the place of the prompts that were left out"
    ours, theirs = (
        {each["uid"]: (each["input"], each["output"]) for each in read_responses(which, 1)}
        for which in (run, control)
    )
    assert all(ours[uid] == theirs[uid] for uid in ours.keys() & theirs.keys())


def test_every_step_is_full_of_groups_that_differ(run: EngineRun) -> None:
    evicted = run.curve("training/filter_groups/evicted_samples")

    assert sum(evicted.values()) > STEPS
    for step in range(1, STEPS + 1):
        assert len(scores_by_prompt(run, step)) == 32


def test_long_responses_pay_in_proportion(run: EngineRun) -> None:
    """The overlong penalty grows from 0 to 1 over the last tokens that are allowed."""
    longest = run.spec.params["max_response_length"]
    free = longest - OVERLONG_BUFFER
    events = [event for event in run.events("rollouts") if event["split"] == "train"]
    rollouts = [rollout for event in events for rollout in event["rollouts"]]

    for rollout in rollouts:
        penalty = max(0, rollout["response_tokens"] - free) / OVERLONG_BUFFER
        parts = rollout["reward_parts"]
        assert parts["overlong_reward"] == pytest.approx(-penalty, abs=1e-5)
        assert rollout["score"] == pytest.approx(parts["acc"] - penalty, abs=1e-5)
    assert any(rollout["response_tokens"] > free for rollout in rollouts)
