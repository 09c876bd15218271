"""The nice value of the processes that Ray starts for a run."""

import pytest
from trellis_contracts.spec import NICENESS_VARIABLE
from trellis_train.engines.cluster import worker_priority


@pytest.mark.parametrize(("told", "niceness"), [(None, "15"), ("0", "0"), ("7", "7")])
def test_workers_have_the_nice_value_that_the_run_is_told_or_that_of_ray(
    monkeypatch: pytest.MonkeyPatch, told: str | None, niceness: str
) -> None:
    monkeypatch.setenv("RAY_worker_niceness", "0")  # of the driver
    monkeypatch.delenv(NICENESS_VARIABLE, raising=False)
    if told is not None:
        monkeypatch.setenv(NICENESS_VARIABLE, told)

    assert worker_priority() == {"RAY_worker_niceness": niceness}
