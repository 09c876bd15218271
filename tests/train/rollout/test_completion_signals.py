"""The trainer hears at once when the last prompt is answered, and soon of others."""

import asyncio
import time

from trellis_train.rollout.completion_signals import INTERVAL_S, CompletionSignal


def time_to_news(*, expected: int, settled: list[int]) -> float:
    async def measure() -> float:
        news = CompletionSignal()
        news.expect(expected)
        for count in settled:
            news.settle(count)
        started = time.monotonic()
        await asyncio.wait_for(news.wait(), 5)
        return time.monotonic() - started

    return asyncio.run(measure())


def test_the_last_prompts_are_told_of_at_once() -> None:
    assert time_to_news(expected=3, settled=[1, 2]) < INTERVAL_S / 2


def test_others_are_told_of_after_a_short_while() -> None:
    assert INTERVAL_S / 2 < time_to_news(expected=3, settled=[1]) < 10 * INTERVAL_S


def test_without_an_answer_there_is_no_news() -> None:
    async def wait() -> bool:
        news = CompletionSignal()
        news.expect(1)
        waiting = asyncio.create_task(news.wait())
        await asyncio.sleep(2 * INTERVAL_S)
        is_waiting = not waiting.done()
        waiting.cancel()
        return is_waiting

    assert asyncio.run(wait())


def test_what_was_told_once_is_not_told_again() -> None:
    async def wait_twice() -> bool:
        news = CompletionSignal()
        news.expect(2)
        news.settle(2)
        await news.wait()
        news.expect(1)
        again = asyncio.create_task(news.wait())
        await asyncio.sleep(INTERVAL_S / 2)
        is_waiting = not again.done()
        again.cancel()
        return is_waiting

    assert asyncio.run(wait_twice())
