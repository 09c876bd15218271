"""The spans of a run's other processes: those that hold the models, run the agent loops and score.

``__ray_call__``, Ray's own door, runs a function in an actor: once to time the calls that reach verl's
workers, and at each step that is told to take what was measured.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, wraps
from typing import Any

from trellis_train.hooks.engine_loads import ENGINE_LANE, list_servers
from trellis_train.hooks.process_spans import SPANS, Place, Span, find_place
from trellis_train.hooks.timeline import TESTING, Lane, Timings, add_up_spans, cut_spans
from trellis_train.hooks.watching import watch
from trellis_train.platform.activation import is_cpu_platform

#: Methods of verl's workers that its trainers call, and the phase that a call of each is.
PHASES = {
    "compute_log_prob": "log_prob",
    "compute_ref_log_prob": "ref",
    "update_actor": "update_actor",
    "infer_batch": "values",
    "train_mini_batch": "update_critic",
    "update_weights": "update_weights",
    "save_checkpoint": "save_checkpoint",
}
#: Kinds of processes, as lanes are named after.
WORKER_LANE, AGENT_LOOP_LANE, REWARD_LANE = "worker", "agent_loop", "reward"
#: verl's groups of workers, by attribute of a trainer; several may be the same processes.
_GROUPS = ("actor_rollout_wg", "ref_policy_wg", "critic_wg")
#: Metrics of how much of a step processes are at work, by the kind of process.
BUSY = {"process_busy/workers": WORKER_LANE, "process_busy/engines": ENGINE_LANE}
#: A process that is silent for longer is left out.
_PATIENCE_S = 2.0
_START_PATIENCE_S = 60.0


# -- in the processes ----------------------------------------------------------------------------------------


def time_workers(actor: Any) -> None:
    """Time the calls that reach the workers of ``actor``, verl's process of colocated workers."""
    for worker in actor.worker_dict.values():
        for name, phase in PHASES.items():
            method = getattr(worker, name, None)
            if method is not None:
                setattr(worker, name, _timed(method, phase))


def _timed(method: Callable[..., Any], phase: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with SPANS.measure(phase):
                return await method(*args, **kwargs)

        return call_async

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with SPANS.measure(phase):
            return method(*args, **kwargs)

    return call


def take_spans(_actor: Any) -> tuple[Place, list[Span]]:
    """Return where this process runs, and its spans since the last call."""
    import ray

    # Without GPUs Ray counts slots of the CPU under their name.
    gpus = () if is_cpu_platform() else tuple(ray.get_gpu_ids())
    return find_place(gpus), SPANS.take()


# -- in the trainer ------------------------------------------------------------------------------------------


def time_all_workers(trainer: Any) -> None:
    """Time the calls that reach the workers of ``trainer``, from now on."""
    import ray

    asked = [handle.__ray_call__.remote(time_workers) for handle in _list_workers(trainer)]
    if asked:
        ray.get(asked, timeout=_START_PATIENCE_S)


def take_lanes(trainer: Any) -> list[Lane]:
    """Take each process's spans since the last call; processes that do not reply in time are left out."""
    import ray

    names, asked = [], []
    for name, ask in _list_processes(trainer):
        names.append(name)
        asked.append(ask())
    if not asked:
        return []
    answered, _ = ray.wait(asked, num_returns=len(asked), timeout=_PATIENCE_S)
    found = []
    for name, reference in zip(names, asked, strict=True):
        if reference in answered:
            taken = watch(f"the spans of {name}", partial(ray.get, reference), None)
            if taken is not None:
                found.append(Lane(name, *taken))
    return found


def measure_busy(lanes: Sequence[Lane], timings: Timings) -> dict[str, float]:
    """Measure the shares of a step, without its validation, when workers were called and engines were busy.

    They are means over the processes; what was not measured is missing.
    """
    begin = timings.started_at
    end = max((stop for phase, _, stop in timings.spans if phase != TESTING), default=begin)
    if end <= begin:
        return {}
    found = {}
    for metric, kind in BUSY.items():
        own = [add_up_spans(cut_spans(lane.spans, begin, end)) for lane in lanes if lane.kind == kind]
        if own:
            found[metric] = sum(own) / len(own) / (end - begin)
    return found


def _list_processes(trainer: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names of lanes, and the calls that ask their processes."""
    loops = getattr(getattr(trainer, "agent_loop_manager", None), "agent_loop_workers", ())
    rewards = getattr(getattr(trainer, "reward_loop_manager", None), "reward_loop_workers", ())
    for number, handle in enumerate(_list_workers(trainer)):
        yield f"{WORKER_LANE} {number}", partial(handle.__ray_call__.remote, take_spans)
    for number, server in enumerate(list_servers(trainer)):
        yield f"{ENGINE_LANE} {number}", server.take_spans.remote
    for kind, handles in ((AGENT_LOOP_LANE, loops), (REWARD_LANE, rewards)):
        # Scoring in the agent loop has a word in the place of a process.
        actors = [handle for handle in handles if not isinstance(handle, str)]
        for number, handle in enumerate(actors):
            yield f"{kind} {number}", partial(handle.__ray_call__.remote, take_spans)


def _list_workers(trainer: Any) -> Iterable[Any]:
    groups = [getattr(trainer, name, None) for name in _GROUPS]
    return dict.fromkeys(handle for group in groups for handle in getattr(group, "workers", ()))
