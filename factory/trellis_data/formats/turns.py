"""Conversations of many rows as two long columns, roles and texts, and the work on them in columns."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis_data.formats.shapes import WIDE_MESSAGE


@dataclass(frozen=True)
class Turns:
    """The turns of all rows; those of row ``n`` are ``offsets[n]`` to ``offsets[n + 1]``."""

    offsets: np.ndarray
    roles: pa.Array
    texts: pa.Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> np.ndarray:
        """How many turns each row has."""
        return np.diff(self.offsets)

    def cut(self, start: np.ndarray, stop: np.ndarray) -> "Turns":
        """Cut the turns from ``start`` to ``stop`` out of each row, counted within the row."""
        counts = np.maximum(stop - start, 0)
        offsets = _offsets_of(counts)
        first = np.repeat(self.offsets[:-1] + start - offsets[:-1], counts)
        at = pa.array(first + np.arange(offsets[-1]))
        return Turns(offsets, self.roles.take(at), self.texts.take(at))

    def nth(self, number: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Return role and text of one turn per row, null where a row has no turn of that number."""
        inside = (number >= 0) & (number < self.counts)
        at = pa.array(self.offsets[:-1] + number, mask=~inside)
        return self.roles.take(at), self.texts.take(at)

    def last_of(self, role: str) -> np.ndarray:
        """Return the index of the last turn of that role in each row; -1 if there is none."""
        hits = np.flatnonzero(pc.fill_null(pc.equal(self.roles, role), False).to_numpy(zero_copy_only=False))
        rows = np.searchsorted(self.offsets, hits, side="right") - 1
        last = np.full(len(self), -1, dtype=np.int64)
        last[rows] = hits - self.offsets[rows]
        return last

    def all_in_row(self, holds: pa.Array) -> np.ndarray:
        """Return whether ``holds`` (one value per turn; null counts as no) is true for all turns of a row."""
        wrong = np.flatnonzero(~pc.fill_null(holds, False).to_numpy(zero_copy_only=False))
        rows = np.searchsorted(self.offsets, wrong, side="right") - 1
        every = np.ones(len(self), dtype=bool)
        every[rows] = False
        return every

    def as_messages(self, kind: pa.DataType) -> pa.ListArray:
        """Convert the turns to lists of messages of that type."""
        return self._lists(kind, {"role": self.roles, "content": self.texts})

    def as_turns(self, kind: pa.DataType, roles: pa.Array) -> pa.ListArray:
        """Convert the turns to ShareGPT lists with these speaker names."""
        return self._lists(kind, {"from": roles, "value": self.texts})

    def joined(self, between: str) -> pa.Array:
        """Join all texts of a row."""
        lists = pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), self.texts)
        return pc.binary_join(lists, between)

    def _lists(self, kind: pa.DataType, known: dict[str, pa.Array]) -> pa.ListArray:
        fields = list(kind.value_type)
        children = [
            known[field.name] if field.name in known else pa.nulls(len(self.texts), field.type)
            for field in fields
        ]
        items = pa.StructArray.from_arrays(children, fields=fields)
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), items, type=kind)


def turns_of(column: pa.Array, role: str, text: str) -> tuple[Turns, np.ndarray]:
    """Read the turns of a column of lists, and which rows contain only a role and a text in each turn."""
    items = column.flatten()
    counts = pc.fill_null(column.value_lengths(), 0).to_numpy(zero_copy_only=False)
    turns = Turns(
        _offsets_of(counts.astype(np.int64)),
        pc.struct_field(items, role).cast(pa.string()),
        pc.struct_field(items, text).cast(pa.string()),
    )
    plain = pc.and_(pc.is_valid(items), pc.is_valid(turns.texts))
    for field in items.type:
        if field.name not in (role, text):
            plain = pc.and_(plain, pc.is_null(pc.struct_field(items, field.name)))
    return turns, turns.all_in_row(plain) & (counts > 0)


def interleave(parts: list[tuple[str, pa.Array, np.ndarray]]) -> Turns:
    """Build turns from columns: each has a role, a text per row, and a mask of the rows that have it."""
    present = np.stack([mask for _, _, mask in parts])
    offsets = _offsets_of(present.sum(axis=0))
    before = np.cumsum(present, axis=0) - present
    places = [offsets[:-1][mask] + before[n][mask] for n, (_, _, mask) in enumerate(parts)]
    order = pa.array(np.argsort(np.concatenate(places), kind="stable"))
    texts = pa.concat_arrays([text.filter(pa.array(mask)) for _, text, mask in parts])
    roles = pa.concat_arrays([pa.repeat(role, int(mask.sum())) for role, _, mask in parts])
    return Turns(offsets, roles.take(order), texts.take(order))


def joined(first: Turns, second: Turns) -> Turns:
    """Concatenate the turns of both, row by row."""
    counts = np.stack([first.counts, second.counts])
    offsets = _offsets_of(counts.sum(axis=0))
    places = [
        _positions(offsets[:-1], first.counts),
        _positions(offsets[:-1] + first.counts, second.counts),
    ]
    order = pa.array(np.argsort(np.concatenate(places), kind="stable"))
    roles = pa.concat_arrays([first.roles, second.roles])
    texts = pa.concat_arrays([first.texts, second.texts])
    return Turns(offsets, roles.take(order), texts.take(order))


def _positions(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    offsets = _offsets_of(counts)
    places: np.ndarray = np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1])
    return places


def _offsets_of(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def is_wide(kind: pa.DataType) -> bool:
    """Return whether messages in lists of this type may contain tool names, tool calls or parts."""
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    known = {field.name for field in WIDE_MESSAGE} | {"function_call"}
    names = {field.name for field in kind.value_type}
    return bool((names & known) - {"role", "content"})
