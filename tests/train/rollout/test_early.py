"""Actors that were started before their arguments existed: nobody asks them until they are constructed."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from trellis_train.rollout.early import AGENT_LOOP
from trellis_train.rollout.worker import AgentLoopManager


class Early:
    """Hands out one actor, whose calls are written down."""

    def __init__(self, which: tuple[str, str], actor: Any) -> None:
        self._actors = {which: [actor]}

    def take(self, which: tuple[str, str]) -> Any | None:
        left = self._actors.get(which)
        return left.pop() if left else None


class Method:
    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        return self._answer()


class Prompts:
    def chunk(self, count: int) -> list[str]:
        return ["prompts"] * count


def manager_with(worker: Any) -> AgentLoopManager:
    manager = AgentLoopManager.__new__(AgentLoopManager)
    manager.rollout_config = SimpleNamespace(agent=SimpleNamespace(num_workers=1))
    manager.config = manager.llm_client = manager.teacher_client = manager.reward_loop_worker_handles = None
    manager.early = Early(AGENT_LOOP, worker)  # type: ignore[assignment]
    asyncio.run(manager._init_agent_loop_workers())
    return manager


def test_workers_are_waited_for_before_the_first_prompts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_for: list[Any] = []
    monkeypatch.setattr(ray, "get", waited_for.append)
    worker = SimpleNamespace(
        construct=Method(lambda: "constructed"), generate_sequences=Method(lambda: "generated")
    )
    manager = manager_with(worker)

    manager.generate_sequences(Prompts())
    manager.generate_sequences(Prompts())

    assert waited_for == [["constructed"], ["generated"], [], ["generated"]]


def test_why_a_worker_could_not_be_made_is_what_the_run_ends_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(references: list[Any]) -> None:
        for reference in references:
            if isinstance(reference, Exception):
                raise reference

    monkeypatch.setattr(ray, "get", get)
    manager = manager_with(SimpleNamespace(construct=Method(lambda: ImportError("no tokenizer"))))

    with pytest.raises(ImportError, match="no tokenizer"):
        manager.generate_sequences(Prompts())
