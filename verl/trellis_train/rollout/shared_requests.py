"""Batch requests to a rollout server and answer each of them once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

#: Responses that end within this time of each other travel together.
GATHER_S = 0.002
Answer = tuple[int, Any]


async def answer_many(
    generate: Callable[..., Awaitable[Any]], requests: Sequence[Mapping[str, Any]]
) -> AsyncIterator[list[Answer]]:
    """Answer ``requests`` (arguments of ``generate``) as they end: (place, answer or error)."""
    ended: list[Answer] = []
    news = asyncio.Event()

    async def answer(place: int, request: Mapping[str, Any]) -> None:
        try:
            result: Any = await generate(**request)
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
            batch, ended = ended, []
            sent += len(batch)
            yield batch
    finally:
        for task in tasks:
            task.cancel()


def answer_once(params: dict[str, Any]) -> dict[str, Any]:
    """Adapt ``params`` to give one answer when the response has ended; the tokens are the same.

    verl reads tokens and their log-probabilities; text is needed only where it ends a response.
    """
    from vllm.sampling_params import RequestOutputKind

    chosen = {"output_kind": RequestOutputKind.FINAL_ONLY, "flat_logprobs": True, **params}
    if not params.get("stop"):
        chosen.setdefault("detokenize", False)
    return chosen


def share_answer(ask: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Wrap ``ask`` so that simultaneous calls share one answer, requested after the last of them came.

    A call that comes while an answer is under way waits for the next one: what it asks about may have changed
    in between, as adapters do between two steps.
    """
    turn = asyncio.Lock()
    upcoming: asyncio.Future[Any] | None = None

    async def ask_next() -> Any:
        nonlocal upcoming
        async with turn:
            upcoming = None
            return await ask()

    async def ask_shared() -> Any:
        nonlocal upcoming
        if upcoming is None or upcoming.done():
            upcoming = asyncio.ensure_future(ask_next())
        return await asyncio.shield(upcoming)

    return ask_shared
