"""What tells of reward hacking, measured on the tensors of a step."""

import pytest
import torch
from trellis_recipes.rewards import reward_kinds
from trellis_train.hooks.hacking_signals import correlate_within_groups, measure_hacking, share_repeated
from trellis_train.hooks.step_responses import StepResponses
from trellis_train.rewards.tool_use import ToolUseScorer


def test_length_is_correlated_with_the_score_within_each_prompt() -> None:
    groups = ["easy"] * 8 + ["hard"] * 8
    lengths = [*range(10, 18), *range(110, 118)]
    # Longer earns more within a prompt, although the hard prompt with its long responses earns less.
    scores = [1.0 + place / 8 for place in range(8)] + [place / 8 for place in range(8)]

    assert correlate_within_groups(groups, lengths, scores) == pytest.approx(1.0)
    assert correlate_within_groups(groups, lengths, [-score for score in scores]) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("count", "score"),
    [(8, lambda place: place), (16, lambda place: 1.0)],
    ids=["too few responses", "all scores equal"],
)
def test_nothing_is_said_of_a_correlation_that_cannot_be_measured(count: int, score) -> None:  # type: ignore[no-untyped-def]
    scores = [float(score(place)) for place in range(count)]

    assert correlate_within_groups(["a"] * count, range(count), scores) is None


def test_repetition_is_the_share_of_ngrams_that_were_there_before() -> None:
    looping, plain, short = torch.tensor([1, 2] * 10), torch.arange(20), torch.tensor([1, 1])

    assert share_repeated([looping]) == pytest.approx(1 - 2 / 17)
    assert share_repeated([plain]) == share_repeated([short]) == 0.0
    assert share_repeated([looping, plain]) == pytest.approx((1 - 2 / 17) / 2)
    assert share_repeated([]) is None


def make_step(infos: list[dict[str, float]], scores: list[float]) -> StepResponses:
    count = len(infos)
    return StepResponses(["a"] * count, scores, [torch.arange(5)] * count, [5] * count, infos)


def test_responses_that_are_paid_without_a_right_answer_are_counted() -> None:
    infos = [
        {"acc": 1.0, "math": 1.0, "format": 1.0},
        {"acc": 0.0, "math": 0.0, "format": 1.0},
        {"acc": 0.0, "math": 0.0, "format": 1.0},
        {"acc": 0.0, "math": 0.0, "format": 0.0},
    ]

    found = measure_hacking(make_step(infos, [1.1, 0.1, 0.1, 0.0]), terms=("math", "format"))

    assert found["training/format_only_fraction"] == 0.5
    assert found["training/answer_reward_mean"] == 0.25
    assert found["reward_parts/format/mean"] == 0.75
    assert "reward_parts/acc/mean" not in found


def test_a_single_reward_without_parts_is_told_by_its_accuracy_alone() -> None:
    """Code is paid for the tests that pass: more of them on average, and fewer that pass all."""
    found = measure_hacking(
        make_step([{"acc": 1.0, "code": 1.0}, {"acc": 0.0, "code": 0.5}], [1.0, 0.5]), terms=("code",)
    )

    assert set(found) == {"training/repeated_ngram_fraction", "training/answer_reward_mean"}
    assert found["training/answer_reward_mean"] == 0.5


@pytest.mark.parametrize("name", ["reward_model", "python"])
def test_nothing_is_right_by_a_reward_that_does_not_end_at_one(name: str) -> None:
    found = measure_hacking(make_step([{"acc": 1.0, name: 3.5}], [3.5]), terms=(name,))

    assert "training/answer_reward_mean" not in found


def test_a_reward_file_may_tell_what_is_right() -> None:
    infos = [
        {"acc": 1.0, "python": 2.0, "python_correct": 0.0},
        {"acc": 1.0, "python": 4.0, "python_correct": 1.0},
    ]

    found = measure_hacking(make_step(infos, [2.0, 4.0]), terms=("python",))

    assert found["training/answer_reward_mean"] == found["training/format_only_fraction"] == 0.5


def test_the_parts_of_a_single_reward_are_told() -> None:
    """Tool use is paid for completion, form, timing ...: its mean alone does not say which of them rises."""
    infos = [
        {"acc": 1.0, "tool_use": 1.0, "tool_use_completion": 0.8, "tool_use_format": 1.0},
        {"acc": 0.0, "tool_use": 0.25, "tool_use_completion": 0.0, "tool_use_format": 1.0},
    ]

    found = measure_hacking(make_step(infos, [1.0, 0.25]), terms=("tool_use",))

    assert found["reward_parts/tool_use/mean"] == 0.625
    assert found["reward_parts/tool_use_format/mean"] == 1.0
    assert found["reward_parts/tool_use_completion/mean"] == found["training/answer_reward_mean"] == 0.4
    assert found["training/format_only_fraction"] == 0.5


def test_the_part_that_tells_what_is_right_is_one_that_the_reward_reports() -> None:
    assert reward_kinds()["tool_use"].answer_part in ToolUseScorer.part_names


def make_agent_step(earned: list[dict[str, float]], scores: list[float]) -> StepResponses:
    count = len(earned)
    infos = [{"score": score, "turns": 3.0} for score in scores]
    return StepResponses(["a"] * count, scores, [torch.arange(5)] * count, [5] * count, infos, earned=earned)


def test_what_an_agent_reports_of_its_own_reward_is_told() -> None:
    earned = [{"answer_score": 1.0, "strategy": 0.1}, {"answer_score": 0.0, "strategy": 0.3}]

    found = measure_hacking(make_agent_step(earned, [1.6, 0.3]), terms=())

    assert found["reward_parts/answer_score/mean"] == found["training/answer_reward_mean"] == 0.5
    assert found["reward_parts/strategy/mean"] == pytest.approx(0.2)
    assert found["training/format_only_fraction"] == 0.5
    assert "reward_parts/turns/mean" not in found


def test_sessions_that_failed_have_no_parts_and_count_for_nothing() -> None:
    found = measure_hacking(make_agent_step([{"correct": 1.0, "style": 0.5}, {}], [0.9, 0.0]), terms=())

    assert found["reward_parts/style/mean"] == 0.5
    assert found["training/answer_reward_mean"] == 1.0
    assert found["training/format_only_fraction"] == 0.0


def test_an_agent_that_does_not_say_what_is_right_is_not_judged_by_it() -> None:
    silent = measure_hacking(make_agent_step([{}, {}], [0.9, 0.0]), terms=())
    styled = measure_hacking(make_agent_step([{"style": 0.5}, {"style": 0.1}], [0.9, 0.0]), terms=())

    assert set(silent) == {"training/repeated_ngram_fraction"}
    assert set(styled) - set(silent) == {"reward_parts/style/mean"}
