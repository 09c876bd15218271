"""verl's vLLM server, asked for many responses at a time and answering each once.

verl asks for every response in a remote call of its own, and vLLM makes an answer of
all tokens so far after each token of each response, of which verl reads the last.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer
from vllm.sampling_params import RequestOutputKind

#: Responses that end within this time of each other travel together.
GATHER_S = 0.002
Answer = tuple[int, Any]


class RolloutServer(vLLMHttpServer):
    """One vLLM engine; trainers reach it through ``rollout.requests``."""

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **more: Any
    ) -> Any:
        return await super().generate(prompt_ids, answer_once(sampling_params), request_id, **more)

    async def generate_many(self, requests: Sequence[Mapping[str, Any]]) -> AsyncIterator[list[Answer]]:
        """Answer ``requests`` (arguments of :meth:`generate`) as they end: (place, answer or error)."""
        ended: list[Answer] = []
        news = asyncio.Event()

        async def answer(place: int, request: Mapping[str, Any]) -> None:
            try:
                result: Any = await self.generate(**request)
            except Exception as error:  # noqa: BLE001 - it is raised where the request was made
                result = error
            ended.append((place, result))
            news.set()

        tasks = [asyncio.create_task(answer(place, request)) for place, request in enumerate(requests)]
        try:
            sent = 0
            while sent < len(requests):
                await news.wait()
                await asyncio.sleep(GATHER_S)
                news.clear()
                bunch, ended = ended, []
                sent += len(bunch)
                yield bunch
        finally:
            for task in tasks:
                task.cancel()


def answer_once(params: dict[str, Any]) -> dict[str, Any]:
    """``params`` for one answer, made when the response has ended; the tokens are the same.

    verl reads tokens and their log-probabilities; text is needed only where it ends a response.
    """
    chosen = {"output_kind": RequestOutputKind.FINAL_ONLY, "flat_logprobs": True, **params}
    if not params.get("stop"):
        chosen.setdefault("detokenize", False)
    return chosen
