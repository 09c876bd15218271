"""What stands in the way of a job that Ray cannot place: which resource, how much of it, and what is free.

The cluster's own view decides: what is asked for is compared with what no node has free.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trellis_contracts.recipe import Text

from trellis_api.core.ray_cluster import RayNode, Waiting

NOT_PLACED = "not_placed"
_LISTED_NODES = 8
_ZH_NAMES = {"CPU": "个 CPU", "GPU": "块 GPU"}


@dataclass(frozen=True)
class Shortage:
    """A request that no node, or all nodes together, can meet now."""

    request: Waiting
    #: The resource that is scarcest, how much of it is free at the best place, and how much is asked for.
    resource: str
    free: float
    needed: float
    message: str


def find_shortage(requests: Sequence[Waiting], nodes: Sequence[RayNode]) -> Shortage | None:
    """Return the first request that the free resources cannot meet; None if they can meet all."""
    for request in requests:
        missing = _find_missing(request, nodes)
        if missing is not None:
            resource, free, needed = missing
            return Shortage(request, resource, free, needed, _describe(request, nodes))
    return None


def describe_alarm(resource: str, free: float, needed: float) -> Text:
    """Return the alarm's title with its figures."""
    zh = _ZH_NAMES.get(resource, f" {resource}")
    return Text(
        en=f"Waiting for the cluster: it needs {_count(needed, resource)} at once, {free:g} free",
        zh=f"正在等待集群资源：需要同时占用 {needed:g} {zh}，空闲 {free:g}",
    )


def _find_missing(request: Waiting, nodes: Sequence[RayNode]) -> tuple[str, float, float] | None:
    """Return the scarcest resource, with its free and its needed amount; None if nothing is missing."""
    if request.is_packed:
        # The node that comes nearest: of the one with CPUs alone, GPUs are missing, and the other way round.
        places = [[_lack(request, [node])] for node in nodes] or [[_lack(request, [])]]
        found = min((place[0] for place in places), key=lambda lack: 0.0 if lack is None else lack[3])
    else:
        found = _lack(request, nodes)
    return None if found is None else found[:3]


def _lack(request: Waiting, nodes: Sequence[RayNode]) -> tuple[str, float, float, float] | None:
    """Return (resource, free, needed, missing share) of the scarcest resource on these nodes."""
    lacks = []
    for resource, needed in request.resources.items():
        free = sum(node.count_free(resource) for node in nodes)
        if needed > free:
            lacks.append((resource, free, needed, (needed - free) / needed))
    return max(lacks, key=lambda lack: lack[3], default=None)


def _describe(request: Waiting, nodes: Sequence[RayNode]) -> str:
    """Describe the requested resources and what each node has."""
    asked = " and ".join(_count(amount, name) for name, amount in request.resources.items() if amount)
    place = " on one node" if request.is_packed else ""
    listed = [
        f"{node.hostname} has "
        + ", ".join(
            f"{node.count_free(name):g} of {_count(node.total.get(name, 0), name)}"
            for name in request.resources
        )
        for node in nodes[:_LISTED_NODES]
    ]
    more = f"; and {len(nodes) - _LISTED_NODES} more nodes" if len(nodes) > _LISTED_NODES else ""
    free = "; ".join(listed) + more if listed else "the cluster has no node"
    return f"Ray cannot place the job: it needs {asked}{place}. Free: {free}."


def _count(amount: float, resource: str) -> str:
    return f"{amount:g} {resource}" + ("" if amount == 1 else "s")
