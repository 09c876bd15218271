"""A trained reward model: one process holds it, and scores responses that wait at the same time."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from trellis_contracts.spec import ModelSource

from trellis_train.platform.activation import is_cpu_platform
from trellis_train.rewards.reward_model_processes import ActorProcess, ChildProcess
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

#: How long the first of a batch waits for others.
GATHER_S = 0.01


class ModelProcess(Protocol):
    """The process that holds the model."""

    async def score(self, batch: list[dict[str, Any]]) -> list[float]:
        """Return one number for each pair of messages and response."""
        ...

    def kill(self) -> None:
        """End the process."""
        ...

    async def wait(self) -> None:
        """Wait until it has ended."""
        ...


class RewardModelScorer:
    """The model's output for prompt and response."""

    def __init__(
        self, source: ModelSource, *, squash: bool, max_tokens: int, batch_size: int, may_use_gpu: bool = True
    ) -> None:
        self._source, self._may_use_gpu = source, may_use_gpu
        self._options = {"squash": squash, "max_tokens": max_tokens, "batch_size": batch_size}
        self._batch_size = batch_size
        self._waiting: list[tuple[Sample, asyncio.Future[float]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._process: ModelProcess | None = None

    async def score(self, sample: Sample) -> float:
        """Wait for the batch that this sample is in."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((sample, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def load(self) -> None:
        """Do nothing: the process starts with the first batch, so GPU memory is used only when needed."""

    async def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()

    async def _work(self) -> None:
        """Score batch after batch until nobody waits."""
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
            futures = [future for _, future in batch]
            try:
                scores = await self._exchange([sample for sample, _ in batch])
            except Exception as error:  # noqa: BLE001 - those who wait are told, each by its own future
                if self._process is not None:
                    self._process.kill()
                self._process = None
                if isinstance(error, RewardUnusable):  # another start would fail after the same wait
                    futures += [future for _, future in self._waiting]
                    self._waiting = []
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
                continue
            for future, score in zip(futures, scores, strict=True):
                if not future.done():
                    future.set_result(score)

    async def _exchange(self, samples: Sequence[Sample]) -> list[float]:
        process = self._process or await self._start()
        self._process = process
        scores = await process.score(
            [
                {"messages": [dict(message) for message in sample.messages], "response": sample.response}
                for sample in samples
            ]
        )
        if len(scores) != len(samples):
            raise RuntimeError(f"the reward model failed: {len(scores)} scores for {len(samples)} responses")
        return [float(score) for score in scores]

    async def _start(self) -> ModelProcess:
        if self._may_use_gpu and not is_cpu_platform() and _is_on_ray():
            return await ActorProcess.start(self._source, self._options)
        return await ChildProcess.start(self._source, self._options, may_use_gpu=self._may_use_gpu)


def _is_on_ray() -> bool:
    """Tell whether this process belongs to a Ray job, whose GPUs are in a placement group."""
    import ray

    return ray.is_initialized()
