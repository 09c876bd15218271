"""verl's vLLM server, asked for many responses at a time and answering each once.

verl asks for every response in a remote call of its own, and vLLM makes an answer of
all tokens so far after each token of each response, of which verl reads the last.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer

from trellis_train.hooks.process_spans import SPANS, Place, Span, find_place
from trellis_train.platform.activation import is_cpu_platform
from trellis_train.rollout.engine_load import SAMPLES
from trellis_train.rollout.request_moments import RequestMoments
from trellis_train.rollout.response_times import MOMENTS_KEY
from trellis_train.rollout.shared_requests import Answer, answer_many, answer_once, share_answer


class RolloutServer(vLLMHttpServer):
    """One vLLM engine; trainers reach it through ``rollout.requests``."""

    async def run_server(self, args: Any) -> None:
        await super().run_server(args)
        # With an adapter verl asks the engine before each response whether it is loaded.
        self.engine.list_loras = share_answer(self.engine.list_loras)
        self._moments = RequestMoments()
        self.engine.generate = self._moments.noting(self.engine.generate)

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **more: Any
    ) -> Any:
        with SPANS.measure("generate"):
            answer = await super().generate(prompt_ids, answer_once(sampling_params), request_id, **more)
        moments = self._moments.take(request_id)
        if moments is not None:
            answer.extra_fields[MOMENTS_KEY] = moments
        return answer

    async def generate_many(self, requests: Sequence[Mapping[str, Any]]) -> AsyncIterator[list[Answer]]:
        """Answer ``requests`` (arguments of :meth:`generate`) as they end."""
        async for batch in answer_many(self.generate, requests):
            yield batch

    async def take_load(self) -> list[tuple[float, int, int, float]]:
        """Return how busy the engine was since the last call: ``Load``s, read without importing vLLM."""
        return [(load.at, load.running, load.waiting, load.kv_use) for load in SAMPLES.take()]

    async def take_spans(self) -> tuple[Place, list[Span]]:
        """Return where the engine runs, and when it had requests since the last call."""
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")  # set by verl to those of this server
        return find_place(() if is_cpu_platform() or not devices else devices.split(",")), SPANS.take()
