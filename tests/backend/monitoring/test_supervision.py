"""What the page and Prometheus tell of the supervisor of the services."""

import time
from pathlib import Path
from typing import Any

from trellis_api.core.settings import Settings
from trellis_api.endpoints.service import EndpointCounts
from trellis_api.monitoring.machine import look_at_machine
from trellis_api.monitoring.measurements import Measurement, probe_supervisor
from trellis_api.monitoring.probes import Probes
from trellis_api.monitoring.prometheus import StateCollector, render
from trellis_api.monitoring.schemas import ComponentHealth
from trellis_contracts.supervision import SUPERVISION_FILE, SupervisedService, Supervision


def measure_supervised(settings: Settings, *, age_s: float = 0, **service: Any) -> Measurement:
    """What is measured where the supervisor last told of one service."""
    told = Supervision(
        pid=1,
        started_at=0,
        renewed_at=time.time() - age_s,
        services=[SupervisedService(name="worker", **service)],
    )
    path = settings.data_root / SUPERVISION_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(told.model_dump_json())
    return probe_supervisor(settings)


def test_the_supervisor_is_well_while_all_that_it_watches_runs(settings: Settings) -> None:
    assert probe_supervisor(settings).health == ComponentHealth.NOT_CONFIGURED
    assert measure_supervised(settings).health == ComponentHealth.OK


def test_restarts_and_services_that_were_given_up_are_told(settings: Settings) -> None:
    recent = measure_supervised(settings, restarts=2, died_at=time.time() - 60, reason="it ended")
    long_ago = measure_supervised(settings, restarts=2, died_at=time.time() - 6_000)
    lost = measure_supervised(settings, state="given_up", restarts=6, died_at=time.time())
    unwatched = measure_supervised(settings, age_s=60)

    assert (recent.health, "worker" in recent.message) == (ComponentHealth.DEGRADED, True)
    assert recent.services[0].reason == "it ended"
    assert long_ago.health == ComponentHealth.OK
    assert (lost.health, "worker" in lost.message) == (ComponentHealth.DOWN, True)
    assert (unwatched.health, "./init.sh" in unwatched.message) == (ComponentHealth.DOWN, True)


def test_prometheus_counts_restarts() -> None:
    service = SupervisedService(name="api", state="given_up", restarts=3)
    measurement = Measurement(ComponentHealth.DOWN, "", services=(service,))
    probes = Probes({"supervisor": lambda: measurement}, lambda: look_at_machine(Path("/")))
    probes.measure_once()

    figures = render(StateCollector(dict, dict, lambda: EndpointCounts({}, {}), probes)).decode()

    assert 'trellis_service_restarts_total{service="api"} 3.0' in figures
    assert 'trellis_service_given_up{service="api"} 1.0' in figures


def test_a_supervisor_that_is_dead_or_hangs_is_not_up_for_prometheus(settings: Settings) -> None:
    measure_supervised(settings, age_s=60)
    probes = Probes({"supervisor": lambda: probe_supervisor(settings)}, lambda: look_at_machine(Path("/")))
    probes.measure_once()

    figures = render(StateCollector(dict, dict, lambda: EndpointCounts({}, {}), probes)).decode()

    assert 'trellis_component_up{component="supervisor"} 0.0' in figures
