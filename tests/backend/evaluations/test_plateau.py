"""When a score counts as standing still."""

from hypothesis import given
from hypothesis import strategies as st
from trellis_api.jobs.evaluating.plateau import Plateau, find_plateau


def test_a_score_that_rises_is_on_no_plateau() -> None:
    assert find_plateau([(1, 0.1), (2, 0.2), (3, 0.3)], patience=1, min_delta=0, mode="max") is None


def test_as_many_scores_without_a_better_one_as_the_patience_are_a_plateau() -> None:
    points = [(10, 0.5), (20, 0.4), (30, 0.5)]

    assert find_plateau(points, patience=3, min_delta=0, mode="max") is None
    assert find_plateau(points, patience=2, min_delta=0, mode="max") == Plateau(0.5, 10, 30, 2)


def test_a_gain_up_to_the_least_one_is_none() -> None:
    points = [(1, 0.50), (2, 0.51), (3, 0.52)]

    assert find_plateau(points, patience=2, min_delta=0.03, mode="max") is not None
    assert find_plateau(points, patience=2, min_delta=0.015, mode="max") is None


def test_a_loss_gets_better_downwards() -> None:
    points = [(1, 3.0), (2, 2.0), (3, 2.5)]

    assert find_plateau(points, patience=1, min_delta=0, mode="min") == Plateau(2.0, 2, 3, 1)
    assert find_plateau(points, patience=1, min_delta=0, mode="max") == Plateau(3.0, 1, 3, 2)


def test_a_resumed_run_gets_its_whole_patience_again() -> None:
    points = [(10, 0.5), (20, 0.4), (30, 0.4), (40, 0.4)]

    assert find_plateau(points, patience=2, min_delta=0, mode="max", after_step=30) is None
    assert find_plateau([*points, (50, 0.4)], patience=2, min_delta=0, mode="max", after_step=30) is not None


def test_nothing_measured_is_no_plateau() -> None:
    assert find_plateau([], patience=1, min_delta=0, mode="max") is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 5), st.sampled_from(["max", "min"]))
def test_without_a_least_gain_it_agrees_with_counting_back_from_the_end(
    values: list[float], patience: int, mode: str
) -> None:
    points = list(enumerate(values))
    best = max(values) if mode == "max" else min(values)
    since = len(values) - 1 - values.index(best)

    found = find_plateau(points, patience=patience, min_delta=0, mode=mode)  # type: ignore[arg-type]

    assert (found is not None) == (since >= patience)
