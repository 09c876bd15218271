"""Actors that were started before their arguments existed: nobody asks them until they are constructed."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from trellis_train.cpu.layer import CpuLayer
from trellis_train.cpu.prestarted_actors import AGENT_LOOP
from trellis_train.platform.layer import Layer
from trellis_train.rollout.worker import AgentLoopManager

CONFIG = OmegaConf.create({"actor_rollout_ref": {"rollout": {"agent": {"num_workers": 1}}, "model": {}}})
#: What verl's manager is made of, and hands to each of its workers.
ARGUMENTS = (CONFIG, "client", {"default": "teacher"}, ["reward worker"])
PROMPTS = TensorDict({"index": torch.arange(2)}, batch_size=2)


class Early:
    """Hands out one actor, whose calls are written down."""

    def __init__(self, which: tuple[str, str], actor: Any) -> None:
        self._actors = {which: [actor]}

    def take(self, which: tuple[str, str]) -> Any | None:
        left = self._actors.get(which)
        return left.pop() if left else None


class Method:
    def __init__(self, answer: Callable[[], Any], asked: list[Any]) -> None:
        self._answer = answer
        self._asked = asked

    def remote(self, *args: Any) -> Any:
        self._asked.append(args)
        return self._answer()


class Worker:
    """The handle of an actor that writes down what it is asked."""

    def __init__(self, construct: Callable[[], Any] = lambda: "constructed") -> None:
        self.asked: list[Any] = []
        self.construct = Method(construct, self.asked)
        self.generate_sequences = Method(lambda: "generated", self.asked)


@pytest.fixture
def make_manager(monkeypatch: pytest.MonkeyPatch) -> Callable[[Worker], Any]:
    """Make a manager as verl's trainer does, for which ``worker`` was started early."""

    def make(worker: Worker) -> Any:
        layer = CpuLayer()
        layer._early = Early(AGENT_LOOP, worker)  # type: ignore[assignment]
        monkeypatch.setattr(AgentLoopManager, "layer", layer)
        return AgentLoopManager.create(*ARGUMENTS)

    return make


def test_workers_are_waited_for_before_the_first_prompts_alone(
    monkeypatch: pytest.MonkeyPatch, make_manager: Callable[[Worker], Any]
) -> None:
    waited_for: list[Any] = []
    monkeypatch.setattr(ray, "get", waited_for.append)
    worker = Worker()
    manager = make_manager(worker)

    manager.generate_sequences(PROMPTS)
    manager.generate_sequences(PROMPTS)

    assert waited_for == [["constructed"], ["generated"], [], ["generated"]]
    assert [len(prompts) for (prompts,) in worker.asked[1:]] == [2, 2]


def test_an_early_worker_is_constructed_with_what_verl_hands_to_its_own(
    monkeypatch: pytest.MonkeyPatch, make_manager: Callable[[Worker], Any]
) -> None:
    early, verls = Worker(), Worker()
    node = {"NodeID": "0" * 56, "Alive": True, "Resources": {"CPU": 1}}
    monkeypatch.setattr(ray, "nodes", lambda: [node])
    actor_class = SimpleNamespace(options=lambda **_: verls.construct)
    monkeypatch.setattr(ray, "remote", lambda cls: actor_class)

    make_manager(early)
    monkeypatch.setattr(AgentLoopManager, "layer", Layer())
    AgentLoopManager.create(*ARGUMENTS)

    assert early.asked == verls.asked == [ARGUMENTS]


def test_why_a_worker_could_not_be_made_is_what_the_run_ends_with(
    monkeypatch: pytest.MonkeyPatch, make_manager: Callable[[Worker], Any]
) -> None:
    def get(references: list[Any]) -> None:
        for reference in references:
            if isinstance(reference, Exception):
                raise reference

    monkeypatch.setattr(ray, "get", get)
    manager = make_manager(Worker(construct=lambda: ImportError("no tokenizer")))

    with pytest.raises(ImportError, match="no tokenizer"):
        manager.generate_sequences(PROMPTS)
