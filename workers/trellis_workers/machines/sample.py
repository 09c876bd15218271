"""Measures the nodes that jobs run on: this machine, or all nodes of the cluster where Ray tells of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from trellis_api.core.ray_cluster import RayNode, look_at_nodes
from trellis_api.monitoring import figures, history
from trellis_api.monitoring.models import MachineSample
from trellis_contracts.tasks import SAMPLE_INTERVAL_S

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write


def sample_machines() -> None:
    """Keep one sample of each node; a node that cannot be asked leaves a gap."""
    settings = get_settings()
    at = datetime.fromtimestamp(figures.now_on_the_grid(SAMPLE_INTERVAL_S), UTC)
    if settings.resolved_platform == "cuda" and settings.ray_dashboard_url is not None:
        samples = _sample_nodes(look_at_nodes(settings.ray_dashboard_url) or (), at)
    else:
        samples = [_sample_here(at)]
    with write() as session:
        history.record(session, samples)


def _sample_here(at: datetime) -> MachineSample:
    node, counters = figures.local_node(), figures.read_counters()
    measured_at = datetime.now(UTC)
    with read() as session:
        before = history.find_previous(session, node=node, at=at)
    levels = figures.measure_levels(get_settings().data_root)
    if before is not None:
        took_s = measured_at.timestamp() - before.counters.get("at_s", before.at.timestamp())
        levels |= figures.compute_rates(before.counters, counters, took_s)
    return MachineSample(
        node=node,
        at=at,
        figures=levels,
        counters={**counters, "at_s": measured_at.timestamp()},
        processes=_list_processes(node, at),
    )


def _sample_nodes(nodes: Sequence[RayNode], at: datetime) -> list[MachineSample]:
    return [
        MachineSample(
            node=node.hostname,
            at=at,
            figures=figures.describe_node(node),
            counters={},
            processes=_list_processes(node.hostname, at),
        )
        for node in {each.hostname: each for each in nodes}.values()
    ]


def _list_processes(node: str, at: datetime) -> list[dict[str, Any]]:
    """List this machine's processes once a minute; those of other machines aren't reported."""
    is_due = at.timestamp() % history.PROCESSES_INTERVAL_S < SAMPLE_INTERVAL_S
    return figures.list_processes() if is_due and node == figures.local_node() else []
