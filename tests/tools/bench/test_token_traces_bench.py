"""The share of a step that traces of tokens take, from the events of a run."""

import pytest
from trellis_tools.bench.token_traces import TRACE_SECONDS, compare
from trellis_train.hooks import token_traces


def event(step: int, at_s: int, seconds: float | None) -> dict[str, object]:
    values = {} if seconds is None else {TRACE_SECONDS: seconds}
    return {"step": step, "time": f"2026-01-01T00:00:{at_s:02d}+00:00", "values": values}


def test_traces_are_compared_with_the_steps_after_the_warm_up() -> None:
    found = compare([event(1, 0, 0.5), event(2, 4, 0.01), event(3, 8, 0.03), event(4, 12, 0.02)], warm_up=1)

    assert (found.ours, found.theirs) == (0.02, 4.0)
    assert found.is_kept
    assert not compare([event(1, 0, 0.5), event(2, 4, 0.05)], warm_up=1).is_kept


def test_a_step_without_traces_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="kept no tokens"):
        compare([event(1, 0, 0.5), event(2, 4, None)], warm_up=1)


def test_the_metric_is_the_one_that_runs_report() -> None:
    assert TRACE_SECONDS == token_traces.TRACE_SECONDS
