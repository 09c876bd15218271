"""The server answers many requests at a time, each once, and asks the engine no more than it must."""

import asyncio
from types import SimpleNamespace
from typing import Any

from trellis_train.rollout.shared_requests import answer_many, answer_once, share_answer


def many(delays: list[float]) -> list[list[tuple[int, Any]]]:
    async def generate(delay: float) -> float:
        await asyncio.sleep(delay)
        if delay == 0.03:
            raise ValueError("a bad prompt")
        return delay

    async def ask() -> list[list[tuple[int, Any]]]:
        return [batch async for batch in answer_many(generate, [{"delay": delay} for delay in delays])]

    return asyncio.run(ask())


def test_answers_come_as_they_end_and_those_that_end_together_travel_together() -> None:
    batches = many([0.2, 0.0, 0.0])

    assert [sorted(batch) for batch in batches] == [[(1, 0.0), (2, 0.0)], [(0, 0.2)]]


def test_an_error_travels_in_the_place_of_its_answer() -> None:
    answers = dict(answer for batch in many([0.0, 0.03]) for answer in batch)

    assert answers[0] == 0.0
    assert isinstance(answers[1], ValueError)


def test_text_is_made_only_where_it_ends_a_response() -> None:
    plain = answer_once({"temperature": 1.0, "seed": 3})
    stopped = answer_once({"stop": ["END"]})

    assert plain["detokenize"] is False
    assert (plain["temperature"], plain["seed"]) == (1.0, 3)
    assert "detokenize" not in stopped


def test_questions_that_meet_are_asked_once_and_a_later_one_anew() -> None:
    asked = SimpleNamespace(count=0)

    async def ask() -> int:
        asked.count += 1
        await asyncio.sleep(0)
        return int(asked.count)

    async def run() -> list[int]:
        shared = share_answer(ask)
        together = await asyncio.gather(shared(), shared(), shared())
        return [*together, await shared()]

    assert asyncio.run(run()) == [1, 1, 1, 2]


def test_a_question_after_a_change_is_not_answered_from_before_it() -> None:
    adapters: list[int] = []
    asked = SimpleNamespace(count=0)

    async def ask() -> list[int]:
        asked.count += 1
        seen = list(adapters)
        await asyncio.sleep(0.02)  # the answer is on its way
        return seen

    async def run() -> list[list[int]]:
        shared = share_answer(ask)
        before = asyncio.ensure_future(shared())
        await asyncio.sleep(0.01)
        adapters.append(1)
        after = [asyncio.ensure_future(shared()) for _ in range(3)]
        return [await before, *[await each for each in after]]

    assert asyncio.run(run()) == [[], [1], [1], [1]]
    assert asked.count == 2


def test_an_answer_that_fails_is_raised_and_the_next_is_asked_for() -> None:
    asked = SimpleNamespace(count=0)

    async def ask() -> int:
        asked.count += 1
        if asked.count == 1:
            raise ValueError("the engine is away")
        return int(asked.count)

    async def run() -> list[Any]:
        shared = share_answer(ask)
        first = await asyncio.gather(shared(), shared(), return_exceptions=True)
        return [*map(str, first), await shared()]

    assert asyncio.run(run()) == ["the engine is away", "the engine is away", 2]
