"""verl's rollout servers, taken from the actors that were started early, without a process to choose one."""

from typing import Any

import ray

from trellis_train.rollout.early import SERVER, SERVER_NAME, EarlyActors
from trellis_train.rollout.routing import FixedServers, is_routed_in_worker


def with_early_actors(manager_cls: type[Any], early: EarlyActors) -> type[Any]:
    """A subclass of verl's ``LLMServerManager`` that uses what ``early`` has started."""

    class LLMServerManager(manager_cls):
        rollout_replica_class: Any

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if self.rollout_config.name == "vllm" and not self.rollout_config.disaggregation.enabled:
                self.rollout_replica_class = _with_early_server(self.rollout_replica_class, early)

        async def _init_global_load_balancer(self) -> None:
            if not is_routed_in_worker(self.config):
                await super()._init_global_load_balancer()
                return
            servers = zip(self.server_addresses, self.server_handles, strict=True)
            self.global_load_balancer = FixedServers(dict(servers))

    return LLMServerManager


def _with_early_server(replica_cls: type[Any], early: EarlyActors) -> type[Any]:
    class Replica(replica_cls):
        server_class: Any

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            from trellis_train.rollout.server import RolloutServer

            self.server_class = _EarlyServerClass(ray.remote(RolloutServer), early)

    return Replica


class _EarlyServerClass:
    """Answers ``cls.options(...).remote(...)`` with the early server, while there is one of that name."""

    def __init__(self, server_class: Any, early: EarlyActors, options: dict[str, Any] | None = None) -> None:
        self._server_class = server_class
        self._early = early
        self._options = options or {}

    def options(self, **options: Any) -> "_EarlyServerClass":
        return _EarlyServerClass(self._server_class, self._early, options)

    def remote(self, **arguments: Any) -> Any:
        server = self._early.take(SERVER) if self._options.get("name") == SERVER_NAME else None
        if server is None:
            return self._server_class.options(**self._options).remote(**arguments)
        ray.get(server.construct.remote(**arguments))
        return server
