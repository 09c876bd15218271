"""What jobs ask of a Ray cluster, and whether a head of our own has it."""

from itertools import combinations_with_replacement

import pytest
from trellis_contracts.recipe import Engine
from trellis_recipes.placement import (
    ResourceDemand,
    Spread,
    count_storage_units,
    entrypoint_demand,
    find_spread,
    head_cpus,
    total_demand,
)
from trellis_recipes.schema import load_schema


def list_mixes(slots: int) -> list[tuple[int, ...]]:
    """All ways in which trainings share the slots: (8,), (4, 4), (4, 2, 2) ..."""
    sizes = range(1, slots + 1)
    return [
        mix
        for count in range(1, slots + 1)
        for mix in combinations_with_replacement(sizes, count)
        if sum(mix) <= slots
    ]


@pytest.mark.parametrize(
    ("engine", "gpus", "demand"),
    [
        (Engine.VERL_PPO, 8, ResourceDemand(1, 0)),
        (Engine.VERL_SFT, 4, ResourceDemand(1, 4)),
        (Engine.TRL, 2, ResourceDemand(1, 2)),
        (Engine.RETRIEVAL, 1, ResourceDemand(1, 1)),
        (Engine.EVALUATE, 2, ResourceDemand(1, 2)),
        (Engine.EVALUATE, 0, ResourceDemand(1, 0)),
        (Engine.EXPORT, 0, ResourceDemand(1, 0)),
    ],
)
def test_an_entrypoint_demands_what_its_own_process_uses(
    engine: Engine, gpus: int, demand: ResourceDemand
) -> None:
    assert entrypoint_demand(engine, gpus) == demand


def test_rl_on_eight_gpus_demands_more_than_thirty_two_cpus() -> None:
    assert total_demand(Engine.VERL_PPO, 8) == ResourceDemand(cpus=8 * 3 + 8 + 1 + 1 + 1, gpus=8)


def test_the_storage_units_are_those_of_the_configuration() -> None:
    config = {"transfer_queue": {"backend": {"SimpleStorage": {"num_data_storage_units": 2}}}}

    assert count_storage_units(config) == 2
    assert total_demand(Engine.VERL_PPO, 1, config).cpus == total_demand(Engine.VERL_PPO, 1).cpus - 6


def test_verl_starts_as_many_storage_units_as_are_assumed() -> None:
    assert count_storage_units(load_schema(Engine.VERL_PPO).tree) == count_storage_units(None)


@pytest.mark.parametrize("slots", [1, 2, 4, 8])
def test_a_head_has_cpus_for_every_mix_of_jobs_that_may_run_together(slots: int) -> None:
    exports, evaluations, endpoints = 2, 3, 4
    beside = exports * entrypoint_demand(Engine.EXPORT, 0).cpus
    beside += evaluations * entrypoint_demand(Engine.EVALUATE, 0).cpus
    beside += endpoints * entrypoint_demand(Engine.SERVE, 0).cpus

    demands = {
        (engine, mix): beside + sum(total_demand(engine, gpus).cpus for gpus in mix)
        for mix in list_mixes(slots)
        for engine in (Engine.VERL_PPO, Engine.VERL_SFT, Engine.EVALUATE)
    }

    cpus = head_cpus(slots, exports=exports, evaluations=evaluations, endpoints=endpoints)
    assert {mix: demand for mix, demand in demands.items() if demand > cpus} == {}


@pytest.mark.parametrize(
    ("gpus", "nodes", "spread"),
    [
        (8, [8], Spread(1, 8)),
        (8, [4, 4], Spread(2, 4)),
        (8, [0, 4, 4], Spread(2, 4)),
        (8, [8, 4, 4], Spread(1, 8)),
        (3, [1, 1, 1], Spread(3, 1)),
        (6, [4, 4], Spread(2, 3)),
        (3, [2, 2], None),
        (16, [8], None),
        (1, [], None),
    ],
)
def test_gpus_are_spread_over_the_fewest_nodes(gpus: int, nodes: list[int], spread: Spread | None) -> None:
    assert find_spread(gpus, nodes) == spread
