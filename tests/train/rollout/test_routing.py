"""A worker chooses servers as verl's balancer does, without asking it."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from omegaconf import OmegaConf
from trellis_train.rollout import routing
from verl.workers.rollout.router import GlobalRequestLoadBalancer

SERVERS = {f"server-{number}": f"handle {number}" for number in range(3)}


class Method:
    def __init__(self, method: Any) -> None:
        self.remote = method


class Actor:
    """verl's balancer behind ``.remote`` as an actor is, counting what it is asked."""

    def __init__(self) -> None:
        self.balancer = GlobalRequestLoadBalancer(SERVERS)
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Method:
        def call(**arguments: Any) -> Any:
            self.calls[name] += 1
            return getattr(self.balancer, name)(**arguments)

        return Method(call)


class Client:
    def __init__(self) -> None:
        self._load_balancer = Actor()
        self._acquire_server: Any = None
        self._release_server: Any = None


def rollout(**changes: Any) -> Any:
    return OmegaConf.create({"full_determinism": False, "router_config_path": None, **changes})


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(routing.ray, "get", lambda value: value)
    return Client()


def acquire(client: Client, *request_ids: str) -> list[tuple[str, Any]]:
    async def ask() -> list[tuple[str, Any]]:
        return [await client._acquire_server(each, prompt_ids=[1]) for each in request_ids]

    return asyncio.run(ask())


def test_requests_spread_over_all_servers_without_a_call(client: Client) -> None:
    routing.route_in_worker(client, rollout())
    client._load_balancer.calls.clear()

    chosen = acquire(client, *(f"request {number}" for number in range(30)))

    assert Counter(chosen) == dict.fromkeys(SERVERS.items(), 10)
    assert not client._load_balancer.calls


def test_a_conversation_stays_with_its_server(client: Client) -> None:
    routing.route_in_worker(client, rollout())

    (first,) = acquire(client, "conversation")
    client._release_server(first[0], request_id="conversation")
    acquire(client, "another", "a third")

    assert acquire(client, "conversation") == [first]


def test_a_server_that_is_free_again_is_chosen(client: Client) -> None:
    routing.route_in_worker(client, rollout())
    busy = acquire(client, "a", "b", "c")

    client._release_server(busy[1][0])

    assert acquire(client, "d") == [busy[1]]


def test_the_balancer_counts_nothing_afterwards(client: Client) -> None:
    routing.route_in_worker(client, rollout())

    assert client._load_balancer.balancer.get_status()["total_inflight"] == 0


@pytest.mark.parametrize("changes", [{"full_determinism": True}, {"router_config_path": "router.yaml"}])
def test_other_ways_of_routing_stay_with_the_balancer(client: Client, changes: dict[str, Any]) -> None:
    routing.route_in_worker(client, rollout(**changes))

    assert client._acquire_server is None
