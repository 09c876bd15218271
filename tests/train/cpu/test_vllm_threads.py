"""Threads of a rollout engine on a CPU, by the size of its model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_train.cpu.vllm_threads import PARAMETERS_PER_THREAD, count_threads


@pytest.mark.parametrize(
    ("parameters", "most", "threads"),
    [
        (0, 2, 1),
        (800_000, 2, 1),
        (PARAMETERS_PER_THREAD, 16, 1),
        (PARAMETERS_PER_THREAD + 1, 16, 2),
        (20_000_000, 2, 2),
        (500_000_000, 8, 8),
    ],
)
def test_a_thread_is_worth_its_millions_of_parameters(parameters: int, most: int, threads: int) -> None:
    assert count_threads(parameters, most) == threads


@given(parameters=st.integers(0, 10**12), most=st.integers(1, 512))
def test_there_is_one_and_never_more_than_were_given(parameters: int, most: int) -> None:
    assert 1 <= count_threads(parameters, most) <= most
