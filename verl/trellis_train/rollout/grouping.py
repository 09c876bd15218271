"""Putting all responses to a prompt into the TransferQueue at once.

verl puts each response when it is ready: a conversion, a round trip to the
controller and one to a storage unit each. Nobody reads them before the prompt's
terminal status, which verl puts last, so they can wait for it and travel together.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

#: Statuses after which the replay buffer may read a prompt's responses.
TERMINAL = frozenset({"finished", "failure"})
Fields = list[dict[str, Any]]


@dataclass
class Group:
    """Responses to one prompt that wait for its terminal status."""

    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def add(self, keys: list[str], fields: Fields, tags: list[dict[str, Any]]) -> None:
        self.rows.extend(zip(keys, fields, tags, strict=True))

    def take(self) -> list[tuple[list[str], Fields, list[dict[str, Any]]]]:
        """The waiting rows in the order of their keys, one batch for each set of columns."""
        batches: dict[tuple[str, ...], list[tuple[str, dict[str, Any], dict[str, Any]]]] = {}
        for row in sorted(self.rows, key=lambda row: row[0]):
            batches.setdefault(tuple(sorted(row[1])), []).append(row)
        self.rows = []
        return [
            ([key for key, _, _ in rows], [values for _, values, _ in rows], [tag for _, _, tag in rows])
            for rows in batches.values()
        ]


current_group: ContextVar[Group | None] = ContextVar("current_group", default=None)


class GroupingQueue:
    """Stands for the ``transfer_queue`` module in verl's agent-loop worker.

    Inside a prompt's task (where ``current_group`` is set) data waits, and is put
    just before the status that makes it readable.
    """

    def __init__(self, queue: Any, to_tensordict: Callable[[Fields], Any]) -> None:
        self._queue = queue
        self._to_tensordict = to_tensordict

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def async_kv_batch_put(
        self, *, keys: list[str], fields: Fields, tags: list[dict[str, Any]], partition_id: str
    ) -> None:
        group = current_group.get()
        if group is None:
            await self._put(keys, fields, tags, partition_id)
        else:
            group.add(keys, fields, tags)

    async def async_kv_put(self, *, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        group = current_group.get()
        if group is not None and tag.get("status") in TERMINAL:
            for keys, fields, tags in group.take():
                await self._put(keys, fields, tags, partition_id)
        await self._queue.async_kv_put(key=key, partition_id=partition_id, tag=tag)

    async def _put(self, keys: list[str], fields: Fields, tags: list[dict[str, Any]], partition: str) -> None:
        await self._queue.async_kv_batch_put(
            keys=keys, fields=self._to_tensordict(fields), tags=tags, partition_id=partition
        )
