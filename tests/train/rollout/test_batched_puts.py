"""Responses and statuses are put together, and nothing is readable before it is complete."""

import asyncio
from typing import Any

import pytest
from trellis_train.rollout.batched_puts import BatchingQueue, Group, current_group

Put = tuple[str, list[str]]


class RecordingQueue:
    """Records what reaches the TransferQueue, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    async def async_kv_batch_put(
        self, *, keys: list[str], tags: list[dict[str, Any]], partition_id: str, fields: Any = None
    ) -> None:
        await asyncio.sleep(0)
        if fields is None:
            statuses = {key: tag["status"] for key, tag in zip(keys, tags, strict=True)}
            self.calls.append(("status", (statuses, partition_id)))
        else:
            self.calls.append(("data", (keys, fields, tags, partition_id)))

    @property
    def put_keys(self) -> list[list[str]]:
        return [call[0] for kind, call in self.calls if kind == "data"]


async def run_prompt(queue: BatchingQueue, name: str, rows: dict[str, dict[str, Any]], status: str) -> None:
    """What verl does for one prompt: running, the sessions in parallel, the terminal status."""
    current_group.set(Group())
    await queue.async_kv_put(key=name, partition_id="train", tag={"status": "running"})
    await asyncio.gather(
        *(
            queue.async_kv_batch_put(keys=[key], fields=[row], tags=[{"of": key}], partition_id="train")
            for key, row in rows.items()
        )
    )
    await queue.async_kv_put(key=name, partition_id="train", tag={"status": status})


def run_prompts(queue: BatchingQueue, *prompts: tuple[str, dict[str, dict[str, Any]], str]) -> None:
    async def run_all() -> None:
        await asyncio.gather(*(asyncio.create_task(run_prompt(queue, *prompt)) for prompt in prompts))

    asyncio.run(run_all())


def test_all_sessions_are_put_at_once_before_the_status_that_lets_them_be_read() -> None:
    recording = RecordingQueue()

    run_prompts(BatchingQueue(recording, list), ("p", {"p_1_0": {"a": 1}, "p_0_0": {"a": 0}}, "finished"))

    assert recording.calls == [
        ("status", ({"p": "running"}, "train")),
        ("data", (["p_0_0", "p_1_0"], [{"a": 0}, {"a": 1}], [{"of": "p_0_0"}, {"of": "p_1_0"}], "train")),
        ("status", ({"p": "finished"}, "train")),
    ]


def test_a_prompt_that_is_cancelled_takes_no_other_with_it() -> None:
    recording = RecordingQueue()
    queue = BatchingQueue(recording, list)

    async def run_both() -> None:
        first = asyncio.create_task(run_prompt(queue, "p", {"p_0_0": {"a": 1}}, "finished"))
        second = asyncio.create_task(run_prompt(queue, "q", {"q_0_0": {"a": 2}}, "finished"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait_for(second, 5)

    asyncio.run(run_both())

    assert recording.calls[-1] == ("status", ({"q": "finished"}, "train"))
    assert recording.put_keys == [["q_0_0"]]


def test_prompts_that_end_together_are_put_together() -> None:
    recording = RecordingQueue()

    run_prompts(
        BatchingQueue(recording, list),
        ("p", {"p_0_0": {"a": 1}}, "finished"),
        ("q", {"q_0_0": {"a": 2}}, "failure"),
    )

    assert [kind for kind, _ in recording.calls] == ["status", "data", "status"]
    assert recording.put_keys == [["p_0_0", "q_0_0"]]
    assert recording.calls[-1] == ("status", ({"p": "finished", "q": "failure"}, "train"))


def test_sessions_that_succeeded_reach_the_queue_when_another_failed() -> None:
    recording = RecordingQueue()

    run_prompts(BatchingQueue(recording, list), ("p", {"p_0_0": {"a": 1}}, "failure"))

    assert [kind for kind, _ in recording.calls] == ["status", "data", "status"]


def test_rows_with_different_columns_travel_apart() -> None:
    recording = RecordingQueue()

    run_prompts(
        BatchingQueue(recording, list), ("p", {"p_0_0": {"a": 1}, "p_1_0": {"a": 1, "b": 2}}, "finished")
    )

    assert recording.put_keys == [["p_0_0"], ["p_1_0"]]


def test_the_two_statuses_of_a_prompt_never_travel_together() -> None:
    recording = RecordingQueue()

    async def both() -> None:
        queue = BatchingQueue(recording, list)
        await asyncio.gather(
            queue.async_kv_put(key="p", partition_id="train", tag={"status": "running"}),
            queue.async_kv_put(key="p", partition_id="train", tag={"status": "finished"}),
        )

    asyncio.run(both())

    assert [call[0]["p"] for _, call in recording.calls] == ["running", "finished"]


def test_partitions_are_kept_apart() -> None:
    recording = RecordingQueue()

    async def both() -> None:
        queue = BatchingQueue(recording, list)
        await asyncio.gather(
            *(
                queue.async_kv_put(key="p", partition_id=each, tag={"status": "running"})
                for each in ("train", "val")
            )
        )

    asyncio.run(both())

    assert sorted(partition for _, (_, partition) in recording.calls) == ["train", "val"]


def test_a_put_that_fails_fails_every_prompt_in_it() -> None:
    class Broken(RecordingQueue):
        async def async_kv_batch_put(self, **_: Any) -> None:
            raise ConnectionError("no storage")

    async def both() -> list[Any]:
        queue = BatchingQueue(Broken(), list)
        puts = (queue.async_kv_put(key=key, partition_id="train", tag={"status": "running"}) for key in "pq")
        return await asyncio.gather(*puts, return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(both())] == [ConnectionError, ConnectionError]


@pytest.mark.parametrize(("status", "expected"), [("finished", [2]), ("failure", [2]), ("running", [])])
def test_settled_prompts_are_told_of_once_they_can_be_read(status: str, expected: list[int]) -> None:
    recording = RecordingQueue()
    told: list[int] = []

    def tell(count: int) -> None:
        assert recording.calls[-1][0] == "status"
        told.append(count)

    async def both() -> None:
        queue = BatchingQueue(recording, list, tell)
        await asyncio.gather(
            *(queue.async_kv_put(key=key, partition_id="train", tag={"status": status}) for key in "pq")
        )

    asyncio.run(both())

    assert told == expected


def test_prompts_whose_status_could_not_be_put_are_not_told_of() -> None:
    class Broken(RecordingQueue):
        async def async_kv_batch_put(self, **_: Any) -> None:
            raise ConnectionError("no storage")

    told: list[int] = []
    put = BatchingQueue(Broken(), list, told.append).async_kv_put(
        key="p", partition_id="train", tag={"status": "finished"}
    )

    with pytest.raises(ConnectionError):
        asyncio.run(put)

    assert told == []


def test_outside_a_prompt_nothing_waits() -> None:
    recording = RecordingQueue()

    asyncio.run(
        BatchingQueue(recording, list).async_kv_batch_put(
            keys=["k"], fields=[{}], tags=[{}], partition_id="t"
        )
    )

    assert [kind for kind, _ in recording.calls] == ["data"]
