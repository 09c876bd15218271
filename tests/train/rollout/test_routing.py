"""A worker chooses servers as verl's balancer does, without asking it; no process is started for one."""

import asyncio
import pickle
from collections import Counter
from typing import Any

import pytest
from omegaconf import OmegaConf
from trellis_train.rollout.routing import FixedServers, route_in_worker
from trellis_train.rollout.servers import with_own_servers
from verl.workers.rollout.llm_server import LLMServerClient

SERVERS = {f"server-{number}": f"handle {number}" for number in range(3)}


def config(mode: str = "sync", **rollout: Any) -> Any:
    described = {"full_determinism": False, "router_config_path": None, **rollout}
    return OmegaConf.create(
        {"trainer": {"v1": {"trainer_mode": mode}}, "actor_rollout_ref": {"rollout": described}}
    )


@pytest.fixture
def client() -> Any:
    """As it arrives in a worker."""
    sent = pickle.dumps(LLMServerClient(config(), FixedServers(SERVERS)))
    client = pickle.loads(sent)
    route_in_worker(client, client._load_balancer)
    return client


def acquire(client: Any, *request_ids: str) -> list[tuple[str, Any]]:
    async def ask() -> list[tuple[str, Any]]:
        return [await client._acquire_server(each, prompt_ids=[1]) for each in request_ids]

    return asyncio.run(ask())


def test_requests_spread_over_all_servers(client: Any) -> None:
    chosen = acquire(client, *(f"request {number}" for number in range(30)))

    assert Counter(chosen) == dict.fromkeys(SERVERS.items(), 10)


def test_a_conversation_stays_with_its_server(client: Any) -> None:
    (first,) = acquire(client, "conversation")
    client._release_server(first[0], request_id="conversation")
    acquire(client, "another", "a third")

    assert acquire(client, "conversation") == [first]


def test_a_server_that_is_free_again_is_chosen(client: Any) -> None:
    busy = acquire(client, "a", "b", "c")

    client._release_server(busy[1][0])

    assert acquire(client, "d") == [busy[1]]


class Manager:
    """verl's, as far as it makes a balancer."""

    rollout_config = OmegaConf.create({"name": "sglang"})
    server_addresses, server_handles = list(SERVERS), list(SERVERS.values())

    def __init__(self, config: Any) -> None:
        self.config = config

    async def _init_global_load_balancer(self) -> None:
        self.global_load_balancer = "an actor"


def balancer_of(config: Any) -> Any:
    manager = with_own_servers(Manager, lambda cls: cls)(config)
    asyncio.run(manager._init_global_load_balancer())
    return manager.global_load_balancer


def test_all_servers_go_to_the_workers_in_the_place_of_a_balancer() -> None:
    assert balancer_of(config()) == FixedServers(SERVERS)


@pytest.mark.parametrize(
    "other",
    [
        config("separate_async"),
        config("colocate_async"),
        config(full_determinism=True),
        config(router_config_path="router.yaml"),
    ],
)
def test_other_ways_of_routing_stay_with_verls_balancer(other: Any) -> None:
    assert balancer_of(other) == "an actor"
