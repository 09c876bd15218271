"""A trained reward model: one child process holds it, and scores responses that wait at the same time."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from trellis_contracts.spec import ModelSource

from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

#: torch, transformers and the weights.
START_TIMEOUT_S = 300.0
BATCH_TIMEOUT_S = 300.0
#: How long the first of a batch waits for others.
GATHER_S = 0.01
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


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
        self._child: asyncio.subprocess.Process | None = None

    async def score(self, sample: Sample) -> float:
        """Wait for the batch that this sample is in."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((sample, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def load(self) -> None:
        """The child starts with the first batch: the model takes its place on the GPU when it is needed."""

    async def close(self) -> None:
        """End the child."""
        self._kill()
        if self._child is not None:
            await self._child.wait()

    def _kill(self) -> None:
        if self._child is not None and self._child.returncode is None:
            if self._child.stdin is not None:
                self._child.stdin.close()
            self._child.kill()

    async def _work(self) -> None:
        """Score batch after batch until nobody waits."""
        await asyncio.sleep(GATHER_S)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
            futures = [future for _, future in batch]
            try:
                scores = await self._exchange([sample for sample, _ in batch])
            except Exception as error:  # noqa: BLE001 - those who wait are told, each by its own future
                self._kill()
                self._child = None
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
        child = self._child or await self._start()
        self._child = child
        request = [
            {"messages": [dict(message) for message in sample.messages], "response": sample.response}
            for sample in samples
        ]
        reply = await self._ask(child, request, BATCH_TIMEOUT_S)
        scores = reply.get("scores")
        if not isinstance(scores, list) or len(scores) != len(samples):
            raise RuntimeError(f"the reward model failed: {reply.get('error', 'no scores')}")
        return [float(score) for score in scores]

    async def _start(self) -> asyncio.subprocess.Process:
        environment = dict(os.environ)
        if not self._may_use_gpu:
            environment[VISIBLE_DEVICES] = ""
        # Ray hides all GPUs from processes that were promised none; an empty list would mean the CPU.
        elif not environment.get(VISIBLE_DEVICES, "all"):
            del environment[VISIBLE_DEVICES]
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "trellis_train.rewards.reward_model_worker", self._source.path),
            json.dumps(self._options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=2**24,
            env=environment,
        )
        try:
            hello = await self._read(child, START_TIMEOUT_S)
        except RuntimeError as error:
            child.kill()
            await child.wait()
            raise RewardUnusable(
                f"The reward model {self._source.model_id} does not start: {error}."
            ) from None
        if "error" in hello:
            child.kill()
            await child.wait()
            raise RewardUnusable(f"The reward model {self._source.model_id} cannot be used: {hello['error']}")
        return child

    async def _ask(self, child: asyncio.subprocess.Process, request: Any, timeout_s: float) -> dict[str, Any]:
        if child.stdin is None:
            raise RuntimeError("the reward model was started without pipes")
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            await child.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise RuntimeError("the reward model's process has ended") from None
        return await self._read(child, timeout_s)

    async def _read(self, child: asyncio.subprocess.Process, timeout_s: float) -> dict[str, Any]:
        if child.stdout is None:
            raise RuntimeError("the reward model was started without pipes")
        try:
            line = await asyncio.wait_for(child.stdout.readline(), timeout_s)
        except TimeoutError:
            raise RuntimeError(f"no answer within {timeout_s:g} s") from None
        if not line:
            raise RuntimeError("the reward model's process has ended; the log has its last words")
        reply: dict[str, Any] = json.loads(line)
        return reply
