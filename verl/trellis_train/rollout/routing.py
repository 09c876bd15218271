"""Choosing a rollout server in the worker, where verl asks an actor before and after each request.

The choice is verl's own: a conversation stays with its server, a new one goes to the server with the
fewest requests in flight. Each worker counts its own requests; they have equal shares of the prompts.
"""

from typing import Any

import ray
from verl.workers.rollout.router import GlobalRequestLoadBalancer


def route_in_worker(client: Any, rollout: Any) -> None:
    """Let verl's ``LLMServerClient`` choose by itself.

    For synchronous training only, where servers neither come nor go and nobody reads the
    balancer's counts. A router of one's own, and routing by hash, stay where they are.
    """
    if rollout.full_determinism or rollout.get("router_config_path") is not None:
        return
    balancer = GlobalRequestLoadBalancer(find_servers(client._load_balancer))

    async def acquire_server(request_id: str, **extra: Any) -> tuple[str, Any]:  # noqa: ARG001
        return balancer.acquire_server(request_id)

    def release_server(server_id: str, request_id: str | None = None) -> None:
        balancer.release_server(server_id, request_id)

    client._acquire_server = acquire_server
    client._release_server = release_server


def find_servers(balancer: Any) -> dict[str, Any]:
    """The handles of all servers by name, which verl's balancer hands out one at a time."""
    count = len(ray.get(balancer.get_all_servers.remote()))
    found: dict[str, Any] = {}
    asked: list[str] = []
    # It gives the one with the fewest requests, so those that are not given back lead to all of them.
    while len(found) < count:
        server_id, server = ray.get(balancer.acquire_server.remote(request_id=f"probe-{len(asked)}"))
        found[server_id] = server
        asked.append(server_id)
    for server_id in asked:
        balancer.release_server.remote(server_id=server_id)
    return found
