"""The Ray cluster's nodes as its dashboard describes them: resources, those in use, GPUs and their load.

Over HTTP alone: Ray itself takes seconds to import, and the API must not.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import httpx

from trellis_api.core.settings import Settings

log = logging.getLogger(__name__)
TIMEOUT_S = 1.5
_MAX_AGE_S = 30.0
_MIB = 1024**2
#: Resources that jobs ask for; Ray lists others that stand for nodes, memory and accelerator types.
_RESOURCES = ("CPU", "GPU")


@dataclass(frozen=True)
class Waiting:
    """Resources that are to be placed; ``is_packed`` where one node must have them all."""

    resources: dict[str, float]
    is_packed: bool = True


class RayUnreachableError(Exception):
    """The dashboard gave no usable answer."""


@dataclass(frozen=True)
class GpuDevice:
    """A device of a node, as Ray's agent there measured it."""

    index: int
    name: str
    utilization_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None = None


@dataclass(frozen=True)
class RayNode:
    """A node that lives. Resources are logical: what jobs ask for, not what a machine has."""

    node_id: str
    hostname: str
    total: dict[str, float]
    #: None where the cluster does not say (it was started without its monitor).
    used: dict[str, float] | None = None
    devices: list[GpuDevice] = field(default_factory=list)
    #: What Ray's agent there measured of the machine, by the names of ``monitoring/figures.py``.
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """Whole logical GPUs."""
        return int(self.total.get("GPU", 0))

    def count_free(self, resource: str) -> float:
        """Return the free amount of a resource; all of it if the cluster does not report usage."""
        return self.total.get(resource, 0.0) - (self.used or {}).get(resource, 0.0)


@cache
def open_client(dashboard_url: str) -> httpx.Client:
    """Open this process's only HTTP client for a dashboard: opening one reads all certificates, 20 ms of CPU.

    Connections are not kept: one that outlived a restart of Ray would fail the first question after it.
    """
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=dashboard_url, timeout=TIMEOUT_S, limits=limits)


def list_nodes(dashboard_url: str, *, timeout_s: float = TIMEOUT_S) -> list[RayNode]:
    """List the live nodes, most GPUs first; ``RayUnreachableError`` if Ray does not answer."""
    with _understood():
        summary = _fetch(dashboard_url, "/nodes?view=summary", timeout_s)["summary"]
        status = _fetch(dashboard_url, "/api/cluster_status", timeout_s).get("clusterStatus") or {}
        usage = (status.get("loadMetricsReport") or {}).get("usageByNode") or {}
        nodes = [
            _read_node(node, usage) for node in summary if node.get("raylet", {}).get("state") == "ALIVE"
        ]
    return sorted(nodes, key=lambda node: (-node.gpus, node.hostname, node.node_id))


def find_nodes(settings: Settings) -> list[RayNode] | None:
    """Return the nodes that jobs run on; None without an answer and on a CPU, whose slots are on one host."""
    if settings.resolved_platform != "cuda" or settings.ray_dashboard_url is None:
        return None
    return recent_nodes(settings.ray_dashboard_url)


def recent_nodes(dashboard_url: str) -> list[RayNode] | None:
    """Return the nodes, at most half a minute old; None if Ray does not answer."""
    seen = _Seen.nodes.get(dashboard_url)
    if seen is None or time.monotonic() - seen[0] > _MAX_AGE_S:
        return look_at_nodes(dashboard_url)
    return seen[1]


def look_at_nodes(dashboard_url: str) -> list[RayNode] | None:
    """Ask for the nodes now, and keep the answer for ``recent_nodes``, that there was none too."""
    try:
        nodes = list_nodes(dashboard_url)
    except RayUnreachableError as error:
        log.debug("the cluster's nodes are not known: %s", error)
        nodes = None
    _Seen.nodes[dashboard_url] = (time.monotonic(), nodes)
    return nodes


class _Seen:
    """What a process saw last, by the dashboard's address."""

    nodes: ClassVar[dict[str, tuple[float, list[RayNode] | None]]] = {}


def list_waiting(dashboard_url: str, driver_id: str, *, timeout_s: float = 5.0) -> list[Waiting]:
    """List a driver's placement groups and actors that no node has taken yet, groups first."""
    groups = _list_state(dashboard_url, "placement_groups", ("state", "PENDING"), timeout_s)
    actors = _list_state(dashboard_url, "actors", ("state", "PENDING_CREATION"), timeout_s)
    with _understood():
        found = [_read_group(group) for group in groups if group["creator_job_id"] == driver_id]
        alone = [
            _read_actor(actor)
            for actor in actors
            # One that is on a node is starting, and one in a placement group waits for that.
            if actor["job_id"] == driver_id and not actor["node_id"] and not actor["placement_group_id"]
        ]
    return [*found, *([_add_up(alone)] if alone else [])]


def auth_headers() -> dict[str, str]:
    """Return Ray's own token, from RAY_AUTH_TOKEN or the file in RAY_AUTH_TOKEN_PATH, as Ray reads it."""
    token = os.environ.get("RAY_AUTH_TOKEN", "").strip()
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if not token and path:
        token = Path(path).read_text().strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _list_state(
    dashboard_url: str, kind: str, filtered: tuple[str, str], timeout_s: float
) -> list[dict[str, Any]]:
    """List the entries of Ray's state API whose field has the given value."""
    key, value = filtered
    parameters = {"detail": "1", "filter_keys": key, "filter_predicates": "=", "filter_values": value}
    with _understood():
        answer = open_client(dashboard_url).get(
            f"/api/v0/{kind}", params=parameters, headers=auth_headers(), timeout=timeout_s
        )
        found: list[dict[str, Any]] = answer.raise_for_status().json()["data"]["result"]["result"]
    return found


@contextmanager
def _understood() -> Iterator[None]:
    """Turn what a missing or an unknown answer raises into ``RayUnreachableError``."""
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise RayUnreachableError(f"Ray's dashboard is not responding: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RayUnreachableError(f"Ray's dashboard answers in an unknown form: {error!r}") from error


def _read_group(group: Mapping[str, Any]) -> Waiting:
    total = _add_up([Waiting(dict(each["unit_resources"]), is_packed=False) for each in group["bundles"]])
    # The state API does not tell the strategy; verl packs a group onto one node (STRICT_PACK).
    return Waiting(total.resources, is_packed=True)


def _read_actor(actor: Mapping[str, Any]) -> Waiting:
    # One that declares no CPU is placed only where one is free.
    return Waiting({"CPU": 1.0, **(actor["required_resources"] or {})}, is_packed=False)


def _add_up(waiting: Sequence[Waiting]) -> Waiting:
    total: dict[str, float] = {}
    for each in waiting:
        for name, amount in each.resources.items():
            total[name] = total.get(name, 0.0) + amount
    return Waiting(total, is_packed=len(waiting) == 1)


def _fetch(dashboard_url: str, path: str, timeout_s: float) -> dict[str, Any]:
    answer = open_client(dashboard_url).get(path, headers=auth_headers(), timeout=timeout_s)
    data: dict[str, Any] = answer.raise_for_status().json()["data"]
    return data


def _read_node(node: Mapping[str, Any], usage: Mapping[str, Any]) -> RayNode:
    raylet = node["raylet"]
    taken = usage.get(raylet["nodeId"])
    return RayNode(
        node_id=raylet["nodeId"],
        hostname=str(node.get("hostname") or raylet["nodeManagerHostname"]),
        total=_keep_resources(raylet["resourcesTotal"]),
        used=None if taken is None else _keep_resources({name: pair[0] for name, pair in taken.items()}),
        devices=[_read_device(device) for device in node.get("gpus") or []],
        figures=_read_known_figures(node),
    )


def _read_known_figures(node: Mapping[str, Any]) -> dict[str, float]:
    """Read a node's usage; nothing if its form is unknown, as jobs can be placed without it."""
    try:
        return _read_figures(node)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        log.debug("the figures of a node have an unknown form: %r", error)
        return {}


def _read_figures(node: Mapping[str, Any]) -> dict[str, float]:
    """Read the usage of processors, memory, disks and network; empty for a node without a report yet."""
    figures: dict[str, float] = {}
    if node.get("cpu") is not None:
        figures["cpu_percent"] = float(node["cpu"])
    if (memory := node.get("mem")) is not None:
        total, _available, _percent, used = memory
        figures |= {"memory_total_bytes": float(total), "memory_used_bytes": float(used)}
    if (disk := (node.get("disk") or {}).get("/")) is not None:
        figures |= {"disk_total_bytes": float(disk["total"]), "disk_used_bytes": float(disk["used"])}
    if (speeds := node.get("diskIoSpeed")) is not None:
        figures |= {"disk_read_bytes_per_s": float(speeds[0]), "disk_written_bytes_per_s": float(speeds[1])}
    if (speeds := node.get("networkSpeed")) is not None:
        figures |= {
            "network_sent_bytes_per_s": float(speeds[0]),
            "network_received_bytes_per_s": float(speeds[1]),
        }
    return figures


def _keep_resources(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(values[name]) for name in _RESOURCES if name in values}


def _read_device(device: Mapping[str, Any]) -> GpuDevice:
    used, total = device.get("memoryUsed"), device.get("memoryTotal")
    return GpuDevice(
        index=int(device["index"]),
        name=str(device["name"]),
        utilization_percent=device.get("utilizationGpu"),
        memory_used_bytes=None if used is None else int(used) * _MIB,
        memory_total_bytes=None if total is None else int(total) * _MIB,
        temperature_celsius=device.get("temperatureC"),
        power_watts=None if device.get("powerMw") is None else float(device["powerMw"]) / 1000,
    )
