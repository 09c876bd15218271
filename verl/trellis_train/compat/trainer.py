"""What the driver of a run changes in verl's trainer (group ``trainer``)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change

GROUP = "trainer"
_TRAINER = "verl.trainer.ppo.v1.trainer_base"

#: Is told the numbers of a step, before the loggers of the configuration.
Listener = Callable[[dict[str, Any], int], None]
_listeners: list[Listener] = []


def listen_to_metrics(listener: Listener) -> None:
    """Tell ``listener`` of all that is logged in this process, in the place of those before."""
    _listeners[:] = [listener]


@change(
    target="verl.utils.tracking.Tracking.log",
    group="metrics",
    kind="required",
    does="Tells the platform of every number that is logged, before the loggers of the configuration.",
    without="The platform has no metrics of verl's runs.",
    note="The `file` logger is no way: it writes NaN and infinities as null, and only what it is given.",
    tests=(
        "tests/train/hooks/test_metrics.py::test_every_step_that_is_logged_is_in_the_spool",
        "tests/train/hooks/test_metrics.py::test_the_loggers_of_the_configuration_still_log",
    ),
)
def log_and_tell(original: Any) -> Any:
    """Wrap ``log`` to tell the listeners first."""

    @wraps(original)
    def log(self: Any, data: dict[str, Any], step: int, backend: Any = None) -> None:
        for listener in _listeners:
            listener(data, step)
        original(self, data, step, backend)

    return log


@change(
    target=f"{_TRAINER}.RewardLoopManager",
    group=GROUP,
    kind="speed",
    does="Scores responses in the agent-loop worker where one of each would do.",
    without="A process more starts, and a batch is made and taken apart for each response.",
    reads=("verl.experimental.reward_loop.reward_loop.RewardLoopManager._init_reward_loop_workers",),
    tests=("tests/train/rollout/test_scoring.py::*",),
)
def score_in_worker(original: Any) -> Any:
    """Wrap verl's manager of reward workers to start none where the agent loop can score by itself."""
    from trellis_train.rollout.scoring import without_reward_processes

    return without_reward_processes(original)


@change(
    target=f"{_TRAINER}.LLMServerManager",
    group=GROUP,
    kind="speed",
    does="Starts servers that answer many requests at a time, and lets workers choose among them.",
    without="Each response is a remote call, with a call to an actor before and after it.",
    reads=(
        "verl.workers.rollout.llm_server.LLMServerManager.__init__",
        "verl.workers.rollout.llm_server.LLMServerManager._init_global_load_balancer",
        "verl.workers.rollout.vllm_rollout.vllm_async_server.vLLMReplica.__init__",
        "verl.workers.rollout.vllm_rollout.vllm_async_server.vLLMReplica.launch_servers",
    ),
    tests=("tests/train/rollout/test_routing.py::*",),
)
def start_own_servers(original: Any) -> Any:
    """Wrap verl's manager of rollout servers to start this platform's servers."""
    from trellis_train.platform.layer import load_layer
    from trellis_train.rollout.servers import with_own_servers

    return with_own_servers(original, load_layer().server_class)


@change(
    target=f"{_TRAINER}.compute_advantage_for_multi_trajectories",
    group=GROUP,
    kind="fix",
    does="Compares sessions, not samples, with every estimator of outcomes.",
    without="Sessions of many samples set the baseline of their group, and failed ones count as responses.",
    tests=("tests/train/algorithms/test_agent_masks.py::*", "tests/train/algorithms/test_advantages.py::*"),
)
def compare_by_session(original: Any) -> Any:
    """Wrap the computation of a step's advantages to compare by session."""
    from verl.trainer.ppo import ray_trainer

    from trellis_train.hooks.branches import compare_sessions

    return compare_sessions(ray_trainer.compute_advantage, original)
