"""Choosing a rollout server in the worker, where verl asks an actor before and after each request.

The choice is verl's own: a conversation stays with its server, a new one goes to the server with the
fewest requests in flight. Each worker counts its own requests; they have equal shares of the prompts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verl.workers.rollout.router import GlobalRequestLoadBalancer


@dataclass(frozen=True)
class FixedServers:
    """The handles of all servers by name, in the place of verl's balancer: a value, where that is a process.

    The process would import as much as a server does, to keep a dictionary.
    """

    by_name: Mapping[str, Any]


def is_routed_in_worker(config: Any) -> bool:
    """Tell whether workers choose the server: in synchronous training, where servers stay the same.

    A router of one's own, and routing by hash, stay with verl's balancer.
    """
    rollout = config.actor_rollout_ref.rollout
    return bool(
        config.trainer.v1.trainer_mode == "sync"
        and not rollout.full_determinism
        and rollout.get("router_config_path") is None
    )


def route_in_worker(client: Any, servers: FixedServers) -> None:
    """Let verl's ``LLMServerClient`` choose by itself."""
    balancer = GlobalRequestLoadBalancer(dict(servers.by_name))

    async def acquire_server(request_id: str, **extra: Any) -> tuple[str, Any]:  # noqa: ARG001
        return balancer.acquire_server(request_id)

    def release_server(server_id: str, request_id: str | None = None) -> None:
        balancer.release_server(server_id, request_id)

    client._acquire_server = acquire_server
    client._release_server = release_server
