"""The speed of the machine, from which times are told where no run was measured."""

import pytest
from trellis_api.monitoring import speed
from trellis_api.monitoring.speed import MachineSpeed, measure_flops


def test_a_machine_does_at_least_a_hundred_million_operations_a_second() -> None:
    assert 1e8 < measure_flops() < 1e15


def test_the_fastest_speed_counts_and_is_measured_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured, now = iter([2.0, 5.0, 3.0]), [0.0]
    monkeypatch.setattr(speed, "_measure", lambda: next(measured))
    monkeypatch.setattr(speed.time, "monotonic", lambda: now[0])
    machine = MachineSpeed()

    found = []
    for now[0] in (0.0, 500.0, 700.0, 1400.0):
        found.append(machine.measure())

    assert found == [2.0, 2.0, 5.0, 5.0]
