"""What tells of reward hacking, measured on the tensors of a step."""

import pytest
import torch
from trellis_train.hooks.hacking_signals import correlate_within_groups, measure_hacking, share_repeated
from trellis_train.hooks.step_responses import StepResponses


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


def test_a_single_reward_has_no_parts_to_diverge() -> None:
    found = measure_hacking(make_step([{"acc": 0.0, "math": 0.5}], [0.5]), terms=("math",))

    assert set(found) == {"training/repeated_ngram_fraction"}


def test_the_parts_of_a_single_reward_are_told() -> None:
    """Tool use is paid for completion, form, timing ...: its mean alone does not say which of them rises."""
    infos = [
        {"acc": 1.0, "tool_use": 1.0, "tool_use_format": 1.0, "tool_use_timing": 1.0},
        {"acc": 0.0, "tool_use": 0.25, "tool_use_format": 1.0, "tool_use_timing": 0.0},
    ]

    found = measure_hacking(make_step(infos, [1.0, 0.25]), terms=("tool_use",))

    assert found["reward_parts/tool_use/mean"] == 0.625
    assert found["reward_parts/tool_use_format/mean"] == 1.0
    assert found["reward_parts/tool_use_timing/mean"] == 0.5
    assert "training/format_only_fraction" not in found
