"""Machines are measured by a worker every ten seconds."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.monitoring import figures, history
from trellis_workers.machines.sample import sample_machines


def test_rates_are_there_from_the_second_sample_on(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    minute = utc_now().timestamp() // 60 * 60
    for second in (0, 10):
        monkeypatch.setattr(figures, "now_on_the_grid", lambda _step, second=second: minute + second)
        sample_machines()

    with platform.read() as session:
        until = utc_now() + timedelta(minutes=2)
        found = history.read_history(
            session, since=until - timedelta(minutes=4), until=until, max_points=1000
        )
        processes = history.read_processes(session, since=None, until=until, max_points=480, limit=100)

    (node,) = found.nodes
    assert node.node == figures.local_node()
    assert node.figures["cpu_percent"][0] is None
    assert 0 <= (node.figures["cpu_percent"][1] or 0) <= 100
    assert None not in node.figures["memory_used_bytes"]
    assert processes, "the first look of a minute lists processes"


def test_nodes_of_a_cluster_that_does_not_answer_leave_a_gap(install: Callable[..., Any]) -> None:
    platform = install(TRELLIS_PLATFORM="cuda")

    sample_machines()

    with platform.read() as session:
        assert history.read_history(session, since=None, until=None, max_points=10).nodes == []
