"""verl's own client and balancer of rollout servers, without processes: their actors are objects here."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf
from trellis_train.rollout.shared_requests import Answer, answer_many
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput
from verl.workers.rollout.router import GlobalRequestLoadBalancer


class Handle:
    """Calls ``instance`` as the handle of an actor calls its own."""

    def __init__(self, instance: Any) -> None:
        self._instance = instance

    def __getattr__(self, name: str) -> Any:
        return _RemoteMethod(getattr(self._instance, name))


class _RemoteMethod:
    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def options(self, **_: Any) -> "_RemoteMethod":
        return self

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._method(*args, **kwargs)
        if inspect.isasyncgen(answer):
            return _stream(answer)
        return asyncio.ensure_future(answer) if inspect.isawaitable(answer) else _done(answer)


async def _stream(answers: AsyncIterator[Any]) -> AsyncIterator["asyncio.Future[Any]"]:
    async for answer in answers:
        yield _done(answer)


def _done(answer: Any) -> "asyncio.Future[Any]":
    future = asyncio.get_running_loop().create_future()
    future.set_result(answer)
    return future


class RolloutServer:
    """Answers a prompt with its tokens backwards, and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def generate(self, **request: Any) -> Any:
        self.asked.append(request)
        return TokenOutput(token_ids=request["prompt_ids"][::-1])


class BatchServer(RolloutServer):
    """Takes many requests in one call, too, and writes down how many."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    async def generate_many(self, requests: Sequence[Mapping[str, Any]]) -> AsyncIterator[list[Answer]]:
        self.calls.append(len(requests))
        async for batch in answer_many(self.generate, requests):
            yield batch


def connect_client(server: RolloutServer, *, full_determinism: bool = False) -> Any:
    """Connect verl's client to one ``server``, as it arrives in a worker."""
    rollout = {"name": "vllm", "full_determinism": full_determinism}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})
    balancer = GlobalRequestLoadBalancer({"server": Handle(server)})
    return LLMServerClient(config, Handle(balancer))
