"""Checks whether the cluster's nodes can hold a job's GPUs."""

from collections.abc import Sequence

from trellis_contracts.recipe import Engine

from trellis_recipes.issues import Issue
from trellis_recipes.placement import find_spread


def check_nodes(engine: Engine, gpus: int, node_gpus: Sequence[int] | None) -> Issue | None:
    """Return what prevents the job from running on the nodes, or None; an unknown cluster is not checked."""
    if node_gpus is None:
        return None
    total, largest = sum(node_gpus), max(node_gpus, default=0)
    if gpus > total:
        message = f"The job requests {gpus} GPUs, but the cluster has {total}."
        return _issue("not_enough_gpus", message, possible=total)
    if engine is Engine.VERL_PPO:
        return _check_spread(gpus, node_gpus)
    if gpus <= largest:
        return None
    message = (
        f"This recipe runs on a single node, and the largest has {largest} GPUs. "
        f"Request at most {largest}; only RL supports multiple nodes."
    )
    return _issue("one_node_only", message, possible=largest)


def _check_spread(gpus: int, node_gpus: Sequence[int]) -> Issue | None:
    """Check that the GPUs can be split equally across nodes, as RL requires."""
    if find_spread(gpus, node_gpus) is not None:
        return None
    possible = max((count for count in range(1, gpus) if find_spread(count, node_gpus)), default=0)
    nodes = ", ".join(str(count) for count in node_gpus if count)
    message = f"{gpus} GPUs can't be split equally across nodes with {nodes}."
    return _issue("gpus_not_whole_nodes", message, possible=possible)


def _issue(code: str, message: str, *, possible: int) -> Issue:
    return Issue(
        code=code, field="resources.gpus", message=message, suggestion=str(possible) if possible else None
    )
