"""The processes of a run that a trainer calls tell when they did what."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from trellis_train.compat.source import SymbolNotFound, find_symbol
from trellis_train.hooks import worker_spans
from trellis_train.hooks.process_spans import SPANS, Place
from trellis_train.hooks.timeline import Lane, Timings
from trellis_train.hooks.worker_spans import (
    PHASES,
    measure_busy,
    take_lanes,
    take_spans,
    time_all_workers,
    time_workers,
)
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray.base import RayClassWithInitArgs, create_colocated_worker_cls

pytestmark = pytest.mark.timeout(120)


class Policy(Worker):
    """Like verl's worker of a policy."""

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def update_actor(self, data: str) -> str:
        return f"updated with {data}"

    @register(dispatch_mode=Dispatch.ONE_TO_ALL, blocking=False)
    async def update_weights(self) -> str:
        return "sent"


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A process of colocated workers as verl makes it, without Ray."""
    monkeypatch.setenv("DISABLE_WORKER_INIT", "1")
    for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    cls = create_colocated_worker_cls({"actor": RayClassWithInitArgs(ray.remote(Policy))})
    SPANS.take()
    yield cls.cls.__ray_metadata__.modified_class()
    SPANS.take()


def test_calls_of_the_trainer_are_timed_where_they_run(process: Any) -> None:
    time_workers(process)

    assert process.actor_update_actor("a batch") == "updated with a batch"
    assert asyncio.run(process.actor_update_weights()) == "sent"

    phases = [phase for phase, start, stop in SPANS.take() if start <= stop]
    assert phases == ["update_actor", "update_weights"]


def has_method(worker: str, name: str) -> bool:
    try:
        find_symbol(f"verl.workers.engine_workers.{worker}.{name}")
    except SymbolNotFound:
        return False
    return True


@pytest.mark.parametrize(
    ("worker", "others"),
    [("ActorRolloutRefWorker", {"infer_batch", "train_mini_batch"}),
     ("TrainingWorker", {"compute_log_prob", "compute_ref_log_prob", "update_actor", "update_weights"})],
)  # fmt: skip
def test_workers_of_verl_have_the_methods_that_are_timed(worker: str, others: set[str]) -> None:
    assert {name for name in PHASES if not has_method(worker, name)} == others


def test_slots_of_a_cpu_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get_gpu_ids", lambda: [3])

    monkeypatch.setenv("VERL_PLATFORM", "cpu")
    assert take_spans(None)[0].gpus == ()

    monkeypatch.delenv("VERL_PLATFORM")
    assert take_spans(None)[0].gpus == ("3",)


class Actor:
    """A handle of Ray's, whose calls are answered at once."""

    def __init__(self, answer: Any) -> None:
        self.asked: list[Any] = []
        self.__ray_call__ = self.take_spans = self.take_load = SimpleNamespace(remote=self._ask)
        self._answer = answer

    def _ask(self, *function: Any) -> Any:
        self.asked.extend(function)
        return self._answer


def test_every_process_is_asked_once_and_the_silent_ones_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def get(reference: Any, timeout: float = 0) -> Any:
        if reference == "died":
            raise ray.exceptions.RayActorError
        return (Place(reference, 1), [("reward", 1.0, 2.0)])

    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(ray, "wait", lambda asked, **_: ([each for each in asked if each != "silent"], []))
    workers = [Actor("a"), Actor("silent")]
    trainer = SimpleNamespace(
        actor_rollout_wg=SimpleNamespace(workers=workers),
        ref_policy_wg=SimpleNamespace(workers=workers),
        llm_server_manager=SimpleNamespace(server_handles=[Actor("b")]),
        agent_loop_manager=SimpleNamespace(agent_loop_workers=[Actor("c"), Actor("died")]),
        reward_loop_manager=SimpleNamespace(reward_loop_workers=["score-in-agent-loop-worker"]),
    )

    time_all_workers(trainer)
    lanes = take_lanes(trainer)

    assert [(lane.name, lane.place.node) for lane in lanes] == [
        ("worker 0", "a"), ("engine 0", "b"), ("agent_loop 0", "c")
    ]  # fmt: skip
    assert workers[0].asked == [time_workers, take_spans]


def test_a_trainer_without_processes_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ray, "get")
    monkeypatch.delattr(ray, "wait")

    time_all_workers(SimpleNamespace())

    assert take_lanes(SimpleNamespace()) == []


def test_how_much_of_a_step_processes_work_is_measured_without_its_validation() -> None:
    timings = Timings({}, lambda: 100.0)
    timings.spans = [("gen", 100.0, 104.0), ("update_actor", 104.0, 110.0), ("testing", 110.0, 120.0)]
    here = Place("node-a", 1)
    lanes = [
        Lane("worker 0", here, [("update_actor", 104.0, 110.0)]),
        Lane("worker 1", here, [("update_actor", 106.0, 110.0)]),
        Lane("engine 0", here, [("generate", 101.0, 104.0), ("generate", 110.0, 120.0)]),
    ]

    assert measure_busy(lanes, timings) == {"process_busy/workers": 0.5, "process_busy/engines": 0.3}
    assert measure_busy([], timings) == {}
    assert worker_spans.BUSY.keys() == {"process_busy/workers", "process_busy/engines"}
