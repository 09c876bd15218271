"""Start actors before their constructor arguments exist.

verl starts the processes of a run one after the other, and each spends seconds
importing while other cores idle. The rollout server and the agent-loop workers are
started here: they import, and are constructed when verl would have started them.
The server comes first, while the trainer itself still imports. Only where their place
is known beforehand: one node, one rollout server.
"""

from collections.abc import Sequence
from importlib import import_module
from threading import Thread
from typing import Any

import ray

from trellis_train.engines.hydra_config import count_rollout_slots

SERVER = ("trellis_train.rollout.server", "RolloutServer")
AGENT_LOOP = ("trellis_train.rollout.worker", "AgentLoopWorker")
#: Module and name of an actor's class.
Which = tuple[str, str]
#: As verl's replica names the server; trainers find it by this name.
SERVER_NAME = "vllm_server_0_0"


def startable_class(cls: type[Any]) -> type[Any]:
    """Make ``cls`` an actor class whose constructor waits: ``construct`` takes its arguments."""

    class Startable(cls):
        def __init__(self, *modules: str) -> None:
            """Import ``modules``, needed later; unpickling the class imported what it needs itself."""
            for module in modules:
                import_module(module)

        def construct(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    Startable.__name__ = Startable.__qualname__ = cls.__name__
    return Startable


class PrestartedActors:
    """The actors of one run that were started ahead; :meth:`take` hands each out once."""

    def __init__(self, config: Any) -> None:
        """Start the server, and import what it needs here too."""
        self._handles: dict[Which, list[Any]] = {}
        self._starting: Thread | None = None
        self._workers = config.actor_rollout_ref.rollout.agent.num_workers
        if _has_known_places(config):
            self._start(SERVER, **_server_options(config))

    def start_workers(self) -> None:
        """Start the workers when the server has imported; to be called when all is imported here."""
        if SERVER not in self._handles:
            return
        (server,) = self._handles[SERVER]
        self._starting = Thread(target=self._start_workers, args=(server,), name="early-workers", daemon=True)
        self._starting.start()

    def take(self, which: Which) -> Any | None:
        """Take a started actor of the class ``which`` (module, name) that awaits ``construct``, or None."""
        if which == AGENT_LOOP and self._starting is not None:
            self._starting.join()
        handles = self._handles.get(which)
        return handles.pop() if handles else None

    def _start_workers(self, server: Any) -> None:
        # Not all at once: they would take the cores from the actors that verl waits for now.
        ray.wait([server.__ray_ready__.remote()])
        for _ in range(self._workers):
            # Ray imports the class of an actor in whoever is handed it.
            self._start(AGENT_LOOP, imports=[SERVER[0]])

    def _start(self, which: Which, *, imports: Sequence[str] = (), **options: Any) -> None:
        module, name = which
        cls = ray.remote(startable_class(getattr(import_module(module), name)))
        handle = cls.options(**options).remote(*imports)
        self._handles.setdefault(which, []).append(handle)


class PrestartedServerClass:
    """Answers ``cls.options(...).remote(...)`` with the early server, while there is one of that name."""

    def __init__(
        self, server_class: Any, early: PrestartedActors, options: dict[str, Any] | None = None
    ) -> None:
        self._server_class = server_class
        self._early = early
        self._options = options or {}

    def options(self, **options: Any) -> "PrestartedServerClass":
        return PrestartedServerClass(self._server_class, self._early, options)

    def remote(self, **arguments: Any) -> Any:
        server = self._early.take(SERVER) if self._options.get("name") == SERVER_NAME else None
        if server is None:
            return self._server_class.options(**self._options).remote(**arguments)
        ray.get(server.construct.remote(**arguments))
        return server


def _has_known_places(config: Any) -> bool:
    """Tell whether the run has one node and one vLLM server, started by this trainer."""
    rollout = config.actor_rollout_ref.rollout
    nodes = [node for node in ray.nodes() if node["Alive"]]
    return bool(
        len(nodes) == 1
        and config.trainer.v1.trainer_mode == "sync"
        and config.trainer.nnodes == 1
        and config.trainer.n_gpus_per_node == count_rollout_slots(rollout)
        and rollout.name == "vllm"
        and not rollout.disaggregation.enabled
        and not config.reward.reward_model.enable
        and rollout.get("router_config_path") is None
    )


def _server_options(config: Any) -> dict[str, Any]:
    """Compose the options as ``vLLMReplica.launch_servers`` does."""
    from verl.plugin.platform import get_platform
    from verl.workers.rollout.replica import CONTROL_METHOD_CONCURRENCY

    platform = get_platform()
    concurrency = max(1000, config.actor_rollout_ref.rollout.max_num_seqs + CONTROL_METHOD_CONCURRENCY)
    env_vars = dict.fromkeys(platform.ray_noset_envvars(), "1") | platform.rollout_env_vars()
    return {"name": SERVER_NAME, "runtime_env": {"env_vars": env_vars}, "max_concurrency": concurrency}
