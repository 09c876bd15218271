"""Responses to a prompt wait for its terminal status, and nothing else changes."""

import asyncio
from typing import Any

from trellis_train.rollout.grouping import Group, GroupingQueue, current_group


class RecordingQueue:
    """Records what reaches the TransferQueue, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    async def async_kv_batch_put(
        self, *, keys: list[str], fields: Any, tags: list[dict[str, Any]], partition_id: str
    ) -> None:
        self.calls.append(("data", (keys, fields, tags, partition_id)))

    async def async_kv_put(self, *, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        self.calls.append(("status", (key, tag["status"], partition_id)))


def run_prompt(queue: GroupingQueue, keys: list[str], status: str, columns: str = "responses") -> None:
    """What verl does for one prompt: running, the sessions in parallel, the terminal status."""

    async def prompt() -> None:
        current_group.set(Group())
        await queue.async_kv_put(key="p", partition_id="train", tag={"status": "running"})
        await asyncio.gather(
            *(
                queue.async_kv_batch_put(
                    keys=[key], fields=[{columns: key}], tags=[{"of": key}], partition_id="train"
                )
                for key in keys
            )
        )
        await queue.async_kv_put(key="p", partition_id="train", tag={"status": status})

    asyncio.run(prompt())


def test_all_sessions_are_put_at_once_before_the_status_that_lets_them_be_read() -> None:
    recording = RecordingQueue()

    run_prompt(GroupingQueue(recording, list), ["p_1_0", "p_0_0"], "finished")

    assert recording.calls == [
        ("status", ("p", "running", "train")),
        (
            "data",
            (
                ["p_0_0", "p_1_0"],
                [{"responses": "p_0_0"}, {"responses": "p_1_0"}],
                [{"of": "p_0_0"}, {"of": "p_1_0"}],
                "train",
            ),
        ),
        ("status", ("p", "finished", "train")),
    ]


def test_sessions_that_succeeded_reach_the_queue_when_another_failed() -> None:
    recording = RecordingQueue()

    run_prompt(GroupingQueue(recording, list), ["p_0_0"], "failure")

    assert [kind for kind, _ in recording.calls] == ["status", "data", "status"]


def test_rows_with_different_columns_travel_apart() -> None:
    group = Group()
    group.add(["p_0_0"], [{"a": 1}], [{}])
    group.add(["p_1_0"], [{"a": 1, "b": 2}], [{}])

    assert [keys for keys, _, _ in group.take()] == [["p_0_0"], ["p_1_0"]]
    assert group.take() == []


def test_two_prompts_at_a_time_keep_their_rows_apart() -> None:
    recording = RecordingQueue()
    queue = GroupingQueue(recording, list)

    async def prompt(name: str) -> None:
        current_group.set(Group())
        await queue.async_kv_batch_put(
            keys=[f"{name}_0_0"], fields=[{"a": 1}], tags=[{}], partition_id="train"
        )
        await asyncio.sleep(0)
        await queue.async_kv_put(key=name, partition_id="train", tag={"status": "finished"})

    async def both() -> None:
        await asyncio.gather(asyncio.create_task(prompt("p")), asyncio.create_task(prompt("q")))

    asyncio.run(both())

    assert [call[1][0] for call in recording.calls if call[0] == "data"] == [["p_0_0"], ["q_0_0"]]


def test_outside_a_prompt_nothing_waits() -> None:
    recording = RecordingQueue()

    asyncio.run(
        GroupingQueue(recording, list).async_kv_batch_put(
            keys=["k"], fields=[{}], tags=[{}], partition_id="t"
        )
    )

    assert [kind for kind, _ in recording.calls] == ["data"]
