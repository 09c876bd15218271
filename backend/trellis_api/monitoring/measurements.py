"""What a probe found, and the probes themselves: each asks one part of the platform one short question.

They run on a background thread (``probes.py``), never inside a request.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx
import redis
from pydantic import ValidationError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from trellis_contracts.presence import BEAT_KEY, LIFETIME_S, WORKER_KEY_PREFIX
from trellis_contracts.supervision import LIFETIME_S as SUPERVISION_LIFETIME_S
from trellis_contracts.supervision import SUPERVISION_FILE, SupervisedService, Supervision

from trellis_api.core.database import Database
from trellis_api.core.ray_cluster import RayNode, auth_headers, look_at_nodes, open_client
from trellis_api.core.settings import Settings
from trellis_api.monitoring.schemas import ComponentHealth

log = logging.getLogger(__name__)
TIMEOUT_S = 1.5
#: Below this multiple of the space that launching needs, the disk is worth a warning.
_DISK_WARNING_FACTOR = 3
_WORKERS_COUNTED = 1000
#: A service that died so recently may do so again.
_RECENT_DEATH_S = 600.0


@dataclass(frozen=True)
class Measurement:
    """One answer. ``at`` is monotonic time, for the age."""

    health: ComponentHealth
    message: str
    latency_ms: float | None = None
    #: Of the supervisor: the services that it watches.
    services: tuple[SupervisedService, ...] = ()
    at: float = field(default_factory=time.monotonic)


Probe = Callable[[], Measurement]


def component_probes(settings: Settings, database: Database) -> dict[str, Probe]:
    """Return a probe for each part of the platform, in the order in which they are shown."""
    broker = _open_redis(settings)
    return {
        "database": lambda: probe_database(database),
        "redis": lambda: probe_redis(broker),
        "workers": lambda: probe_workers(broker),
        "beat": lambda: probe_beat(broker),
        "ray": lambda: probe_ray(settings),
        "disk": lambda: probe_disk(settings),
        "supervisor": lambda: probe_supervisor(settings),
    }


def probe_database(database: Database) -> Measurement:
    """Probe the database with one query over a pooled connection."""
    started = time.perf_counter()
    try:
        with database.engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except SQLAlchemyError as error:
        log.warning("the database does not answer: %s", error)
        return Measurement(ComponentHealth.DOWN, "Not responding.")
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    return Measurement(ComponentHealth.OK, f"Connected ({kind}).", _elapsed_ms(started))


def probe_redis(broker: redis.Redis | None) -> Measurement:
    """Send a PING to Redis."""
    if broker is None:
        return Measurement(ComponentHealth.NOT_CONFIGURED, "TRELLIS_REDIS_URL is not set.")
    started = time.perf_counter()
    try:
        broker.ping()
    except redis.RedisError as error:
        log.debug("redis does not answer: %s", error)
        return Measurement(ComponentHealth.DOWN, "Not responding. Jobs stay queued until it is back.")
    return Measurement(ComponentHealth.OK, "Connected.", _elapsed_ms(started))


def probe_workers(broker: redis.Redis | None) -> Measurement:
    """Count the workers that renewed their key."""
    if broker is None:
        return Measurement(ComponentHealth.NOT_CONFIGURED, "Unavailable without Redis.")
    try:
        keys = broker.scan_iter(match=f"{WORKER_KEY_PREFIX}*", count=_WORKERS_COUNTED)
        count = sum(1 for _ in keys)
    except redis.RedisError:
        return Measurement(ComponentHealth.DOWN, "Unknown: Redis is not responding.")
    if not count:
        message = f"No worker heartbeat for {LIFETIME_S} s; queued jobs don't start."
        return Measurement(ComponentHealth.DOWN, message)
    return Measurement(ComponentHealth.OK, f"{count} worker{'s' if count > 1 else ''} running.")


def probe_beat(broker: redis.Redis | None) -> Measurement:
    """Look for beat's key."""
    if broker is None:
        return Measurement(ComponentHealth.NOT_CONFIGURED, "Unavailable without Redis.")
    try:
        is_alive = bool(broker.exists(BEAT_KEY))
    except redis.RedisError:
        return Measurement(ComponentHealth.DOWN, "Unknown: Redis is not responding.")
    if not is_alive:
        message = f"No heartbeat for {LIFETIME_S} s; finished jobs are not recorded."
        return Measurement(ComponentHealth.DOWN, message)
    return Measurement(ComponentHealth.OK, "Running.")


def probe_ray(settings: Settings) -> Measurement:
    """Ask the Jobs API for its version, with Ray's own token where it wants one."""
    if not settings.ray_dashboard_url:
        return Measurement(ComponentHealth.NOT_CONFIGURED, "TRELLIS_RAY_DASHBOARD_URL is not set.")
    started = time.perf_counter()
    try:
        client = open_client(settings.ray_dashboard_url)
        answer = client.get("/api/version", headers=auth_headers(), timeout=TIMEOUT_S)
        version = answer.raise_for_status().json()["ray_version"]
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        hint = "the token is missing or wrong" if status in {401, 403} else "not the Jobs API"
        return Measurement(ComponentHealth.DOWN, f"Ray returned status {status}: {hint}.")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        log.debug("ray does not answer: %s", error)
        return Measurement(ComponentHealth.DOWN, "Jobs API not responding; no job can start.")
    except (ValueError, KeyError, TypeError):
        return Measurement(ComponentHealth.DOWN, "The server at this address is not Ray.")
    message = f"Connected (Ray {str(version)[:40]})."
    latency_ms = _elapsed_ms(started)
    if settings.resolved_platform != "cuda":
        return Measurement(ComponentHealth.OK, message, latency_ms)
    return _compare_slots(
        message, look_at_nodes(settings.ray_dashboard_url), settings.total_slots, latency_ms
    )


def _compare_slots(
    message: str, nodes: Sequence[RayNode] | None, slots: int, latency_ms: float
) -> Measurement:
    """Check whether the nodes have as many GPUs as jobs may use."""
    if nodes is None:
        return Measurement(ComponentHealth.DEGRADED, f"{message} Its nodes are unknown.", latency_ms)
    gpus = sum(node.gpus for node in nodes)
    message = f"{message} {len(nodes)} node{'s' if len(nodes) > 1 else ''} with {gpus} GPUs."
    if gpus < slots:
        message = f"{message} TRELLIS_SLOTS is {slots}, so some admitted jobs cannot be placed."
        return Measurement(ComponentHealth.DEGRADED, message, latency_ms)
    return Measurement(ComponentHealth.OK, message, latency_ms)


def probe_disk(settings: Settings) -> Measurement:
    """Compare the free space with what launching needs, and see whether files can be written."""
    try:
        free = shutil.disk_usage(settings.data_root).free
    except OSError as error:
        return Measurement(ComponentHealth.DOWN, f"Can't read the data root: {error.strerror}.")
    if not os.access(settings.data_root, os.W_OK | os.X_OK):
        return Measurement(ComponentHealth.DOWN, "The data root is not writable.")
    needed = settings.min_free_disk_bytes
    message = f"{free / 1024**3:.1f} GiB free."
    if free < needed:
        return Measurement(
            ComponentHealth.DOWN, f"{message} Launching a job needs {needed / 1024**3:.1f} GiB."
        )
    health = ComponentHealth.DEGRADED if free < _DISK_WARNING_FACTOR * needed else ComponentHealth.OK
    return Measurement(health, message)


def probe_supervisor(settings: Settings) -> Measurement:
    """Read what the supervisor of this machine's services last wrote; without one, others run them."""
    try:
        told = Supervision.model_validate_json((settings.data_root / SUPERVISION_FILE).read_bytes())
    except FileNotFoundError:
        return Measurement(ComponentHealth.NOT_CONFIGURED, "Not running.")
    except (OSError, ValidationError) as error:
        log.warning("what the supervisor tells cannot be read: %s", error)
        return Measurement(ComponentHealth.DEGRADED, "Can't read the supervisor's status.")
    services = tuple(told.services)
    age_s = time.time() - told.renewed_at
    if age_s > SUPERVISION_LIFETIME_S:
        message = "Not running: services that die stay down until you run ./init.sh."
        return Measurement(ComponentHealth.DOWN, message, services=services)
    lost = [each.name for each in services if each.state == "given_up"]
    if lost:
        message = f"Gave up after repeated crashes: {', '.join(lost)}. See its log and run ./init.sh."
        return Measurement(ComponentHealth.DOWN, message, services=services)
    restless = [
        each.name for each in services if each.died_at and time.time() - each.died_at < _RECENT_DEATH_S
    ]
    if restless:
        message = f"Restarted in the last ten minutes: {', '.join(restless)}."
        return Measurement(ComponentHealth.DEGRADED, message, services=services)
    return Measurement(ComponentHealth.OK, f"Watching {len(services)} services.", services=services)


def _open_redis(settings: Settings) -> redis.Redis | None:
    if not settings.redis_url:
        return None
    return redis.Redis.from_url(
        settings.redis_url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    )


def _elapsed_ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
