"""Welch's test over seeds, against published numbers, the formula and simulated truth."""

import numpy as np
import pytest
from scipy import stats
from trellis_evaluation.statistics import welch


def test_welchs_interval_is_that_of_the_formula() -> None:
    a, b = np.array([0.50, 0.52, 0.51]), np.array([0.53, 0.56, 0.54, 0.57])
    u, v = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    freedom = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    half = stats.t.ppf(0.975, freedom) * np.sqrt(u + v)

    found = welch(a, b)

    assert found.difference == pytest.approx(0.04)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.04 - half, 0.04 + half))


def test_the_p_value_is_that_of_students_sleep_data_in_r() -> None:
    """``t.test(extra ~ group, data = sleep)`` prints t = -1.8608, df = 17.776, p-value = 0.07939."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

    found = welch(first, second)

    assert found.p_value == pytest.approx(0.07939, abs=5e-6)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.2054832, 3.3654832), abs=1e-6)


@pytest.mark.parametrize(("seeds", "spreads"), [((3, 3), (1, 1)), ((3, 5), (1, 2)), ((5, 5), (1, 4))])
def test_the_interval_of_a_few_seeds_holds_the_true_difference_at_least_as_often_as_it_says(
    seeds: tuple[int, int], spreads: tuple[float, float]
) -> None:
    draw, inside, times = np.random.default_rng(11), 0, 1000
    for _ in range(times):
        interval = welch(
            draw.normal(0, spreads[0], seeds[0]), draw.normal(0.5, spreads[1], seeds[1])
        ).interval
        inside += interval is not None and interval.low <= 0.5 <= interval.high

    # Welch's interval is somewhat too wide for three values, and the share itself is drawn: 3 deviations.
    assert 0.93 <= inside / times <= 0.99


def test_values_without_any_spread_have_a_difference_and_no_interval() -> None:
    found = welch([0.1, 0.1, 0.1], [0.3, 0.3])

    assert (found.difference, found.interval, found.p_value) == (pytest.approx(0.2), None, None)


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([], []), ([1.0, float("nan")], [1.0, 2.0])])
def test_a_single_seed_and_what_is_no_number_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match=r"no (spread|finite number)"):
        welch(a, b)
