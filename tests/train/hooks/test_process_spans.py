"""What a process did when is kept in it until it is taken."""

import os
import socket

import pytest
from trellis_train.hooks.process_spans import ProcessSpans, find_place


class Clock:
    """Says the seconds that it is told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spans(clock: Clock) -> ProcessSpans:
    return ProcessSpans(clock)


def test_calls_are_timed_and_taken_once(spans: ProcessSpans, clock: Clock) -> None:
    with spans.measure("log_prob"):
        clock.now = 101.0
    clock.now = 103.0

    def fail() -> None:
        with spans.measure("update_actor"):
            clock.now = 105.0
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert spans.take() == [("log_prob", 100.0, 101.0), ("update_actor", 103.0, 105.0)]
    assert spans.take() == []


def test_calls_that_overlap_make_one_span(spans: ProcessSpans, clock: Clock) -> None:
    first, second = spans.measure("responses"), spans.measure("responses")
    first.__enter__()
    clock.now = 101.0
    second.__enter__()
    clock.now = 102.0
    first.__exit__(None, None, None)
    clock.now = 104.0
    second.__exit__(None, None, None)

    assert spans.take() == [("responses", 100.0, 104.0)]


def test_what_is_under_way_is_told_until_now_and_goes_on(spans: ProcessSpans, clock: Clock) -> None:
    with spans.measure("responses"):
        clock.now = 102.0
        assert spans.take() == [("responses", 100.0, 102.0)]
        clock.now = 103.0

    assert spans.take() == [("responses", 102.0, 103.0)]


def test_calls_that_follow_each_other_at_once_are_one_span(spans: ProcessSpans, clock: Clock) -> None:
    for _ in range(3):
        with spans.measure("reward"):
            clock.now += 0.5
        clock.now += 0.001

    (span,) = spans.take()
    assert span == ("reward", 100.0, pytest.approx(101.502))


def test_a_process_knows_its_place() -> None:
    assert find_place([0, "1"]) == (socket.gethostname(), os.getpid(), ("0", "1"))
