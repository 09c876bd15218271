"""Put responses into the TransferQueue in batches instead of one at a time.

verl puts each response and each status of a prompt when it is there: a conversion, a
round trip to the controller and one to a storage unit each. Nobody reads responses
before their prompt's terminal status, which verl puts last, so they wait for it; and
what several prompts put at about the same time travels in one batch.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

#: Statuses after which the replay buffer may read a prompt's responses.
TERMINAL = frozenset({"finished", "failure"})
#: A status waits this long for others to travel with.
GATHER_S = 0.002
Fields = list[dict[str, Any]]
Row = tuple[str, dict[str, Any], dict[str, Any]]


@dataclass
class Group:
    """Responses to one prompt that wait for its terminal status."""

    rows: list[Row] = field(default_factory=list)

    def add(self, keys: list[str], fields: Fields, tags: list[dict[str, Any]]) -> None:
        self.rows.extend(zip(keys, fields, tags, strict=True))

    def take(self) -> list[Row]:
        """Take the waiting rows in key order."""
        rows, self.rows = sorted(self.rows, key=lambda row: row[0]), []
        return rows


current_group: ContextVar[Group | None] = ContextVar("current_group", default=None)


@dataclass
class _Delivery:
    """What waits to be put into one partition, and who waits for that."""

    rows: list[Row] = field(default_factory=list)
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: A task of its own: a prompt that is cancelled takes nobody else's delivery with it.
    task: "asyncio.Task[None] | None" = None


class BatchingQueue:
    """Stands for the ``transfer_queue`` module in verl's agent-loop worker.

    Inside a prompt's task (where ``current_group`` is set) data waits, and is put
    just before the status that makes it readable. ``on_settled`` is told how many prompts have
    reached a terminal status whenever some have.
    """

    def __init__(
        self,
        queue: Any,
        to_columns: Callable[[Fields], Any],
        on_settled: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._to_columns = to_columns
        self._on_settled = on_settled
        self._waiting: dict[str, _Delivery] = {}
        self._turn = asyncio.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def async_kv_batch_put(
        self, *, keys: list[str], fields: Fields, tags: list[dict[str, Any]], partition_id: str
    ) -> None:
        group = current_group.get()
        if group is None:
            await self._put_rows(list(zip(keys, fields, tags, strict=True)), partition_id)
        else:
            group.add(keys, fields, tags)

    async def async_kv_put(self, *, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        """Put the status of a prompt, after its responses where it is the last; returns when it is there."""
        waiting = self._waiting.get(partition_id)
        if waiting is None or key in waiting.statuses:
            waiting = self._waiting[partition_id] = _Delivery()
        waiting.statuses[key] = tag
        group = current_group.get()
        if group is not None and tag.get("status") in TERMINAL:
            waiting.rows += group.take()
        if waiting.task is None:
            waiting.task = asyncio.create_task(self._deliver(partition_id, waiting))
        await asyncio.shield(waiting.task)

    async def _deliver(self, partition: str, delivery: _Delivery) -> None:
        """Put what has gathered when the delivery before is through, so that statuses keep their order."""
        await asyncio.sleep(GATHER_S)
        async with self._turn:
            if self._waiting.get(partition) is delivery:
                del self._waiting[partition]
            await self._put_rows(delivery.rows, partition)
            keys, tags = list(delivery.statuses), list(delivery.statuses.values())
            await self._queue.async_kv_batch_put(keys=keys, tags=tags, partition_id=partition)
        # Not after an error: verl then puts another status for each prompt, and that one counts.
        if settled := sum(tag.get("status") in TERMINAL for tag in tags):
            self._on_settled(settled)

    async def _put_rows(self, rows: list[Row], partition: str) -> None:
        """Put one batch for each set of columns."""
        batches: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            batches.setdefault(tuple(sorted(row[1])), []).append(row)
        for batch in batches.values():
            await self._queue.async_kv_batch_put(
                keys=[key for key, _, _ in batch],
                fields=self._to_columns([values for _, values, _ in batch]),
                tags=[tag for _, _, tag in batch],
                partition_id=partition,
            )
