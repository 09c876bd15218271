"""verl's rollout servers, each of our class, and found without a process to choose one."""

from collections.abc import Callable
from typing import Any

import ray

from trellis_train.rollout.routing import FixedServers, is_routed_in_worker

#: What verl starts servers by, of the class of an actor.
Starting = Callable[[Any], Any]


def with_own_servers(manager_cls: type[Any], starting: Starting) -> type[Any]:
    """Create a subclass of verl's ``LLMServerManager`` that starts our servers by ``starting(class)``."""

    class LLMServerManager(manager_cls):
        rollout_replica_class: Any

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if self.rollout_config.name == "vllm" and not self.rollout_config.disaggregation.enabled:
                self.rollout_replica_class = _with_own_server(self.rollout_replica_class, starting)

        async def _init_global_load_balancer(self) -> None:
            if not is_routed_in_worker(self.config):
                await super()._init_global_load_balancer()
                return
            servers = zip(self.server_addresses, self.server_handles, strict=True)
            self.global_load_balancer = FixedServers(dict(servers))

    return LLMServerManager


def _with_own_server(replica_cls: type[Any], starting: Starting) -> type[Any]:
    class Replica(replica_cls):
        server_class: Any

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            from trellis_train.rollout.server import RolloutServer

            self.server_class = starting(ray.remote(RolloutServer))

    return Replica
