"""Requests made together travel together, and each is answered as if it had travelled alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from trellis_testing.rollout_client import BatchServer, RolloutServer, connect_client
from trellis_train.rollout.requests import ENOUGH, RequestBatcher, ServerLost, batch_requests

Answers = AsyncIterator[list[tuple[int, Any]]]


class Server:
    """Answers ``x`` with ``-x``, the last request first; negative numbers with an error."""

    def __init__(self, batch: int = 2, most: int | None = None) -> None:
        self.calls: list[list[int]] = []
        self._batch = batch
        self._most = most

    def send(self, requests: list[Any]) -> Answers:
        self.calls.append([request["x"] for request in requests])
        return self._answers(requests)

    async def _answers(self, requests: list[Any]) -> Answers:
        places = list(reversed(range(len(requests))))[: self._most]
        for first in range(0, len(places), self._batch):
            await asyncio.sleep(0)
            yield [
                (place, self._answer(requests[place]["x"])) for place in places[first : first + self._batch]
            ]

    @staticmethod
    def _answer(x: int) -> Any:
        return ValueError(f"{x} is negative") if x < 0 else -x


def ask(server: Server, numbers: list[int]) -> list[Any]:
    async def ask_all() -> list[Any]:
        batcher = RequestBatcher(server.send)
        return await asyncio.gather(*(batcher.generate(x=x) for x in numbers), return_exceptions=True)

    return asyncio.run(ask_all())


def test_requests_made_together_are_one_call_and_each_gets_its_own_answer() -> None:
    server = Server()

    answers = ask(server, [1, 2, 3, 4, 5])

    assert answers == [-1, -2, -3, -4, -5]
    assert server.calls == [[1, 2, 3, 4, 5]]


def test_a_later_request_does_not_wait_for_the_answers_to_earlier_ones() -> None:
    server = Server()

    async def two_turns() -> list[Any]:
        batcher = RequestBatcher(server.send)
        first = await batcher.generate(x=1)
        return [first, await batcher.generate(x=2)]

    assert asyncio.run(two_turns()) == [-1, -2]
    assert server.calls == [[1], [2]]


def test_one_failed_request_fails_alone() -> None:
    good, bad, other = ask(Server(), [1, -2, 3])

    assert (good, other) == (-1, -3)
    with pytest.raises(ValueError, match="-2 is negative"):
        raise bad


def test_a_server_that_stops_answering_fails_what_it_left() -> None:
    left, answered = ask(Server(most=1), [1, 2])

    assert isinstance(left, ServerLost)
    assert answered == -2


def test_a_call_that_fails_fails_every_request_in_it() -> None:
    class Broken(Server):
        async def _answers(self, requests: list[Any]) -> Answers:
            raise ConnectionError("gone")
            yield []

    assert [type(answer) for answer in ask(Broken(), [1, 2])] == [ConnectionError, ConnectionError]


def test_a_call_that_cannot_be_made_fails_every_request_in_it() -> None:
    class Gone(Server):
        def send(self, requests: list[Any]) -> Answers:
            raise ConnectionError("gone")

    answers = ask(Gone(), list(range(ENOUGH + 1)))
    assert [type(answer) for answer in answers] == [ConnectionError] * (ENOUGH + 1)


def test_enough_requests_leave_while_others_are_still_made() -> None:
    server = Server()
    numbers = list(range(1, 2 * ENOUGH + 4))
    seen: list[int] = []

    async def ask_one(batcher: RequestBatcher, x: int) -> Any:
        seen.append(len(server.calls))
        return await batcher.generate(x=x)

    async def ask_all() -> list[Any]:
        batcher = RequestBatcher(server.send)
        return await asyncio.gather(*(ask_one(batcher, x) for x in numbers))

    assert asyncio.run(ask_all()) == [-x for x in numbers]
    assert [len(call) for call in server.calls] == [ENOUGH, ENOUGH, 3]
    assert seen == [0] * ENOUGH + [1] * ENOUGH + [2] * 3


def test_an_agent_loop_that_was_cancelled_holds_nobody_up() -> None:
    async def cancel_first() -> int:
        batcher = RequestBatcher(Server().send)
        first = asyncio.create_task(batcher.generate(x=1))
        second = asyncio.create_task(batcher.generate(x=2))
        await asyncio.sleep(0)
        first.cancel()
        answer: int = await second
        return answer

    assert asyncio.run(cancel_first()) == -2


def ask_client(client: Any, *prompts: list[int]) -> list[list[int]]:
    """The answers of verl's client to requests that are made together."""

    async def ask_all() -> list[list[int]]:
        requests = (client.generate("r", prompt_ids=prompt, sampling_params={}) for prompt in prompts)
        return [answer.token_ids for answer in await asyncio.gather(*requests)]

    return asyncio.run(ask_all())


def test_requests_of_verls_client_are_one_call_to_a_server_that_takes_many() -> None:
    server = BatchServer()
    client = connect_client(server)
    batch_requests(client)

    answers = ask_client(client, [1, 2], [3, 4], [5, 6])

    assert answers == [[2, 1], [4, 3], [6, 5]]
    assert server.calls == [3]


def test_verls_client_asks_a_server_that_takes_one_request_at_a_time_for_each() -> None:
    server = RolloutServer()
    client = connect_client(server)
    batch_requests(client)

    answers = ask_client(client, [1, 2], [3, 4])

    assert answers == [[2, 1], [4, 3]]
    assert [request["prompt_ids"] for request in server.asked] == [[1, 2], [3, 4]]
