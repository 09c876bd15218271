"""The keys of rows, counted as the columns that they become: cheap also where every row has new ones."""

from typing import Any

import pyarrow as pa

from trellis_data.reading.problems import MAX_DEPTH, MAX_LEAF_COLUMNS

#: An object's keys with what is below each; nothing below a plain value.
_Tree = dict[str, "_Tree"]


class KeyCount:
    """Takes rows as long as all that were taken have no more leaf columns than can be stored."""

    def __init__(self, kind: pa.StructType) -> None:
        """Begin with the columns of ``kind``."""
        self._tree: _Tree = {}
        self._leaves = 1
        self._added: list[tuple[_Tree, str]] = []
        self._graft_type(kind, self._tree)

    def take(self, row: dict[str, Any]) -> bool:
        """Count the row's keys if they fit beside the earlier ones; return whether they do."""
        before, self._added = self._leaves, []
        if self._graft(row, self._tree, 0):
            return True
        for node, key in reversed(self._added):
            del node[key]
        self._leaves = before
        return False

    def _graft(self, value: Any, node: _Tree, depth: int) -> bool:
        if depth > MAX_DEPTH:
            return True  # refused for its depth, by whoever makes a type of it
        if isinstance(value, dict):
            for key, item in value.items():
                child = node.get(key)
                if child is None:
                    child = self._add(node, key)
                    if self._leaves > MAX_LEAF_COLUMNS:
                        return False
                if isinstance(item, dict | list) and not self._graft(item, child, depth + 1):
                    return False
        elif isinstance(value, list):
            return all(self._graft(item, node, depth + 1) for item in value if isinstance(item, dict | list))
        return True

    def _graft_type(self, kind: pa.DataType, node: _Tree) -> None:
        if pa.types.is_struct(kind):
            for field in kind:
                self._graft_type(field.type, self._add(node, field.name))
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            self._graft_type(kind.value_type, node)

    def _add(self, node: _Tree, key: str) -> _Tree:
        # The first key of an object takes the place of the object itself.
        self._leaves += 1 if node else 0
        node[key] = {}
        self._added.append((node, key))
        return node[key]
