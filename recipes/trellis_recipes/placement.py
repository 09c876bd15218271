"""What a job asks of a Ray cluster: the resources of its entrypoint, and of the processes that it starts.

Ray places an entrypoint that asks for resources on a node that has them and shows it the GPUs that it was
given; one that asks for nothing runs on the head and sees every GPU there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trellis_contracts.recipe import Engine

#: Bundles of verl's placement groups (``ResourcePoolManager.max_colocate_count``): one GPU and CPUs for three
#: processes that share it.
CPUS_PER_GPU = 3
#: The controller of verl's TransferQueue.
_CONTROLLER_CPUS = 1
#: Held by nobody for long: Ray places actors that declare no CPU only where one is free.
_SPARE_CPUS = 1
#: TransferQueue's storage units where a configuration names none, as verl's does.
STORAGE_UNITS = 8
_STORAGE_KEY = ("transfer_queue", "backend", "SimpleStorage", "num_data_storage_units")
#: The least that a head of our own declares: room for what a person's overrides add.
MIN_HEAD_CPUS = 32


@dataclass(frozen=True)
class ResourceDemand:
    """Ray's logical resources."""

    cpus: int
    gpus: int

    def __add__(self, other: "ResourceDemand") -> "ResourceDemand":
        return ResourceDemand(self.cpus + other.cpus, self.gpus + other.gpus)


def entrypoint_demand(engine: Engine, gpus: int) -> ResourceDemand:
    """Return the resources of the process that Ray starts for a job; ``gpus`` is what the job was given.

    The GPUs of RL are in placement groups of verl's, which its driver only waits for. One CPU whatever the
    GPUs: Ray sets OMP_NUM_THREADS to the number of CPUs, and every rank would start that many threads.
    """
    return ResourceDemand(cpus=1, gpus=0 if engine is Engine.VERL_PPO else gpus)


def process_demand(engine: Engine, gpus: int, config: Mapping[str, Any] | None = None) -> ResourceDemand:
    """Return the resources of a job's processes besides its entrypoint; ``config`` is nested."""
    if engine is not Engine.VERL_PPO:
        return ResourceDemand(cpus=0, gpus=0)
    cpus = CPUS_PER_GPU * gpus + count_storage_units(config) + _CONTROLLER_CPUS + _SPARE_CPUS
    return ResourceDemand(cpus=cpus, gpus=gpus)


def total_demand(engine: Engine, gpus: int, config: Mapping[str, Any] | None = None) -> ResourceDemand:
    """Return everything that must be free for a job to take its first step."""
    return entrypoint_demand(engine, gpus) + process_demand(engine, gpus, config)


def count_storage_units(config: Mapping[str, Any] | None) -> int:
    """Count TransferQueue's storage units in a configuration of verl's, each of which holds a CPU."""
    value: Any = config
    for name in _STORAGE_KEY:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else STORAGE_UNITS


def head_cpus(slots: int, *, exports: int, evaluations: int, endpoints: int) -> int:
    """Count the logical CPUs of a head that must hold whatever jobs may run together.

    The most is asked for by one RL job on each slot: a job on several has one set of storage units.
    """
    training = slots * total_demand(Engine.VERL_PPO, 1).cpus
    beside = exports * entrypoint_demand(Engine.EXPORT, 0).cpus
    beside += evaluations * entrypoint_demand(Engine.EVALUATE, 0).cpus
    beside += endpoints * entrypoint_demand(Engine.SERVE, 0).cpus
    return max(MIN_HEAD_CPUS, training + beside)


@dataclass(frozen=True)
class Spread:
    """A job's GPUs over nodes, as many on each."""

    nodes: int
    gpus_per_node: int


def find_spread(gpus: int, node_gpus: Sequence[int]) -> Spread | None:
    """Return the spread over the fewest nodes with an equal share on each; None if there is none."""
    for nodes in range(1, len(node_gpus) + 1):
        share = gpus // nodes
        if gpus % nodes == 0 and share and sum(each >= share for each in node_gpus) >= nodes:
            return Spread(nodes, share)
    return None
