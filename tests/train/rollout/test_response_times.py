"""What a response does while it is sampled: its requests, its tools, its scoring."""

import asyncio
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_train.rollout.request_moments import RequestMoments
from trellis_train.rollout.requests import RequestBatcher
from trellis_train.rollout.response_times import (
    MOMENTS_KEY,
    PARTS_KEY,
    begin_response,
    end_response,
    measure_part,
    note_request,
)


def read_parts() -> list[tuple[str, float, float]]:
    """What was noted of the response of this task."""
    output = SimpleNamespace(extra_fields={})
    end_response(output)
    parts: list[tuple[str, float, float]] = output.extra_fields[PARTS_KEY]
    return parts


def test_a_request_waits_and_is_computed() -> None:
    begin_response()
    now = time.time()
    answer = SimpleNamespace(extra_fields={MOMENTS_KEY: (now - 2.0, now - 0.5), "global_steps": 3})

    note_request(now - 3.0, answer)

    assert read_parts() == [("queued", now - 3.0, now - 2.0), ("generate", now - 2.0, now - 0.5)]
    assert answer.extra_fields == {"global_steps": 3}, "agent loops are not told"


@pytest.mark.parametrize("moments", [None, (-60.0, -59.0), (-1.0, 60.0), (-1.0, -2.0)])
def test_moments_of_another_clock_are_not_believed(moments: tuple[float, float] | None) -> None:
    begin_response()
    now = time.time()
    fields = {} if moments is None else {MOMENTS_KEY: tuple(now + each for each in moments)}

    note_request(now - 3.0, SimpleNamespace(extra_fields=fields))

    ((phase, start, end),) = read_parts()
    assert (phase, start, end) == ("request", now - 3.0, pytest.approx(now, abs=1.0))


async def _sample(batcher: RequestBatcher, number: int) -> list[str]:
    begin_response()
    await batcher.generate(number=number)
    with measure_part("tool"):
        await asyncio.sleep(0.01)
    return [phase for phase, _, _ in read_parts()]


def test_requests_that_travel_together_are_noted_with_the_response_that_made_them() -> None:
    async def send(requests: list[Any]) -> AsyncIterator[list[tuple[int, Any]]]:
        begun = time.time()
        await asyncio.sleep(0.01)
        for place, request in enumerate(requests):
            fields = {MOMENTS_KEY: (begun + 0.004, time.time())} if request["number"] else {}
            yield [(place, SimpleNamespace(extra_fields=fields))]

    async def sample_all() -> list[list[str]]:
        batcher = RequestBatcher(send)
        return await asyncio.gather(*(_sample(batcher, number) for number in range(2)))

    assert asyncio.run(sample_all()) == [["request", "tool"], ["queued", "generate", "tool"]]


def test_outside_of_a_response_nothing_is_noted() -> None:
    async def measure() -> None:
        with measure_part("tool"):
            pass

    asyncio.run(measure())


def test_an_engine_says_when_it_computed_a_request() -> None:
    begun = time.monotonic()

    async def generate(request_id: str, has_stats: bool = True) -> Any:
        yield SimpleNamespace(request_id=request_id, metrics=None)
        metrics = SimpleNamespace(scheduled_ts=begun, last_token_ts=begun + 2.0) if has_stats else None
        yield SimpleNamespace(request_id=request_id, metrics=metrics)

    async def ask(moments: RequestMoments, request_id: str, **options: Any) -> int:
        return len([each async for each in moments.noting(generate)(request_id, **options)])

    moments = RequestMoments()
    assert asyncio.run(ask(moments, "a")) == 2
    asyncio.run(ask(moments, "b", has_stats=False))

    scheduled, last = moments.take("a") or (0.0, 0.0)
    assert last - scheduled == pytest.approx(2.0, abs=1e-3)
    assert scheduled == pytest.approx(time.time(), abs=30)
    assert moments.take("a") is None
    assert moments.take("b") is None
