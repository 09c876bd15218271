"""Memory that grows, and memory that does not."""

import pytest
from trellis_tools.soak.growth import measure_growth

MIB = 2**20


def test_memory_that_rises_in_the_warm_up_and_then_stays_is_bounded() -> None:
    samples = [at * 10 * MIB for at in range(1, 11)] + [100 * MIB, 104 * MIB, 98 * MIB] * 20

    growth = measure_growth("api", samples)

    assert growth.is_bounded
    assert growth.most == 104 * MIB


def test_memory_that_rises_all_the_time_is_not_bounded() -> None:
    growth = measure_growth("api", [(100 + at) * MIB for at in range(100)])

    assert not growth.is_bounded
    assert growth.ratio == pytest.approx(0.406, abs=0.01)


def test_memory_that_is_given_back_is_bounded() -> None:
    assert measure_growth("api", [(200 - at) * MIB for at in range(100)]).is_bounded


def test_a_run_that_was_too_short_says_so() -> None:
    with pytest.raises(ValueError, match="10 samples are not enough"):
        measure_growth("api", [MIB] * 10)
