"""What the rollout engines of a run were at during a step: for its timeline, and as metrics."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from trellis_contracts.events import MAX_LOAD_SAMPLES, EngineLoad

#: An engine's lane in a timeline, with its number.
ENGINE_LANE = "engine"
#: Metrics start with it.
PREFIX = "rollout_engine/"
#: A server that is silent for longer is not waited for.
_PATIENCE_S = 2.0
#: verl's managers of a trainer that have servers, by attribute.
_MANAGERS = ("llm_server_manager", "standalone_server_manager")
#: (seconds since 1970, running, waiting, part of the KV cache in use), as servers tell it.
Sample = tuple[float, int, int, float]


def take_loads(trainer: Any) -> list[list[Sample]]:
    """Take each rollout server's samples since the last call; servers without samples are left out."""
    import ray

    asked = [server.take_load.remote() for server in list_servers(trainer)]
    found: list[list[Sample]] = ray.get(asked, timeout=_PATIENCE_S)
    return found


def list_servers(trainer: Any) -> list[Any]:
    """List the trainer's rollout servers that report their load."""
    managers = [getattr(trainer, name, None) for name in _MANAGERS]
    servers = [handle for manager in managers for handle in getattr(manager, "server_handles", None) or ()]
    return [server for server in servers if hasattr(server, "take_load")]


def cut_loads(loads: Sequence[Sequence[Sample]], begin: float) -> list[list[Sample]]:
    """Return the samples since ``begin``, starting with each engine's load at that time.

    Earlier samples may be from validation.
    """
    cut = []
    for samples in loads:
        before = [(begin, *sample[1:]) for sample in samples if sample[0] < begin]
        cut.append([*before[-1:], *(sample for sample in samples if sample[0] >= begin)])
    return cut


def end_loads(loads: Sequence[Sequence[Sample]], end: float) -> list[list[Sample]]:
    """Return the samples before ``end``, ending with each engine's load at that time.

    Later samples are from validation.
    """
    kept = [[sample for sample in samples if sample[0] < end] for samples in loads]
    return [[*samples, (end, *samples[-1][1:])] if samples else [] for samples in kept]


def describe_loads(loads: Sequence[Sequence[Sample]], begin: float) -> list[EngineLoad]:
    """Convert each engine's samples for the timeline of the step that started at ``begin``."""
    found = []
    for number, samples in enumerate(loads):
        kept = samples[-MAX_LOAD_SAMPLES:]
        if kept:
            found.append(
                EngineLoad(
                    name=f"{ENGINE_LANE} {number}",
                    at_s=[round(at - begin, 4) for at, *_ in kept],
                    running=[running for _, running, _, _ in kept],
                    waiting=[waiting for _, _, waiting, _ in kept],
                    kv_use=[round(min(1.0, max(0.0, use)), 4) for *_, use in kept],
                )
            )
    return found


def measure_loads(loads: Sequence[Sequence[Sample]]) -> dict[str, float]:
    """Measure how busy engines were while they worked; empty if they did not, or do not report."""
    parts = [part for samples in loads for part in _list_busy(samples)]
    total_s = sum(took for took, *_ in parts)
    if total_s <= 0:
        return {}
    return {
        f"{PREFIX}running/mean": sum(took * running for took, running, _, _ in parts) / total_s,
        f"{PREFIX}waiting/mean": sum(took * waiting for took, _, waiting, _ in parts) / total_s,
        f"{PREFIX}queued_fraction": sum(took for took, _, waiting, _ in parts if waiting > 0) / total_s,
        f"{PREFIX}kv_cache_use/max": max(use for *_, use in parts),
    }


def _list_busy(samples: Sequence[Sample]) -> Iterable[tuple[float, int, int, float]]:
    """Yield periods with requests: (seconds, running, waiting, use)."""
    for (at, running, waiting, use), (until, *_) in pairwise(samples):
        if running or waiting:
            yield until - at, running, waiting, use
