"""The process that holds a reward model: a child of this one, or a Ray actor on a GPU of the job's."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

from trellis_contracts.spec import ModelSource

from trellis_train.rewards.job_gpu import VISIBLE_DEVICES, start_on_job_gpu
from trellis_train.rewards.scorer import RewardUnusable

#: torch, transformers and the weights.
START_TIMEOUT_S = 300.0
BATCH_TIMEOUT_S = 300.0


class ChildProcess:
    """``reward_model_worker`` as a child: a JSON line with a batch in, one with scores out."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    @classmethod
    async def start(
        cls, source: ModelSource, options: dict[str, Any], *, may_use_gpu: bool
    ) -> "ChildProcess":
        """Start the child and wait for its model; ``RewardUnusable`` where it cannot be used."""
        hidden = {} if may_use_gpu else {VISIBLE_DEVICES: ""}
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "trellis_train.rewards.reward_model_worker", source.path),
            json.dumps(options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=2**24,
            env={**os.environ, **hidden},
        )
        process = cls(child)
        try:
            hello = await process._read(START_TIMEOUT_S)
        except RuntimeError as error:
            child.kill()
            await child.wait()
            raise RewardUnusable(f"The reward model {source.model_id} could not start: {error}.") from None
        if "error" in hello:
            child.kill()
            await child.wait()
            raise RewardUnusable(f"The reward model {source.model_id} cannot be used: {hello['error']}")
        return process

    async def score(self, batch: list[dict[str, Any]]) -> list[float]:
        """Return one number for each pair of messages and response."""
        reply = await self._ask(batch, BATCH_TIMEOUT_S)
        scores = reply.get("scores")
        if not isinstance(scores, list):
            raise RuntimeError(f"the reward model failed: {reply.get('error', 'no scores')}")
        return scores

    def kill(self) -> None:
        """End the child."""
        if self._child.returncode is None:
            if self._child.stdin is not None:
                self._child.stdin.close()
            self._child.kill()

    async def wait(self) -> None:
        """Wait until it has ended."""
        await self._child.wait()

    async def _ask(self, request: Any, timeout_s: float) -> dict[str, Any]:
        if self._child.stdin is None:
            raise RuntimeError("the reward model was started without pipes")
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            await self._child.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise RuntimeError("the reward model's process exited") from None
        return await self._read(timeout_s)

    async def _read(self, timeout_s: float) -> dict[str, Any]:
        if self._child.stdout is None:
            raise RuntimeError("the reward model was started without pipes")
        try:
            line = await asyncio.wait_for(self._child.stdout.readline(), timeout_s)
        except TimeoutError:
            raise RuntimeError(f"no response within {timeout_s:g} s") from None
        if not line:
            raise RuntimeError("the reward model's process exited; see the log for its last lines")
        reply: dict[str, Any] = json.loads(line)
        return reply


class ActorProcess:
    """``JobGpuModel`` as a Ray actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    async def start(cls, source: ModelSource, options: dict[str, Any]) -> "ActorProcess":
        """Start the actor and wait for its model; ``RewardUnusable`` where it cannot be used."""
        import ray.exceptions

        try:
            process = cls(start_on_job_gpu(source.path, options))
        except LookupError as error:
            raise RewardUnusable(f"The reward model {source.model_id} has no GPU: {error}.") from None
        try:
            await asyncio.wait_for(process._actor.load.remote(), START_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            raise RewardUnusable(
                f"The reward model {source.model_id} did not start within {START_TIMEOUT_S:g} s."
            ) from None
        except ray.exceptions.RayError as error:
            process.kill()
            text = str(error).strip().splitlines()[-1][:500]
            raise RewardUnusable(f"The reward model {source.model_id} cannot be used: {text}") from None
        return process

    async def score(self, batch: list[dict[str, Any]]) -> list[float]:
        """Return one number for each pair of messages and response."""
        scores: list[float] = await asyncio.wait_for(self._actor.score.remote(batch), BATCH_TIMEOUT_S)
        return scores

    def kill(self) -> None:
        """End the actor."""
        import ray

        ray.kill(self._actor)

    async def wait(self) -> None:
        """Do nothing: Ray ends it."""
