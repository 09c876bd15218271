"""Exact search: a query's vector against those of all tools, one product of matrix and vector."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VECTORS_FILE, NAMES_FILE = "tool_vectors.npy", "tool_names.json"


class ToolIndex:
    """Vectors of length 1 by the names of their tools."""

    def __init__(self, names: Sequence[str], vectors: NDArray[np.float32]) -> None:
        if vectors.ndim != 2 or len(names) != len(vectors):
            raise ValueError(f"{len(names)} names do not go with vectors of shape {vectors.shape}")
        self.names = list(names)
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)

    def search(self, query: NDArray[np.float32], count: int = 10) -> list[tuple[str, float]]:
        """Return the ``count`` nearest tools with their cosine, nearest first; ties by position."""
        scores = self.vectors @ np.asarray(query, dtype=np.float32)
        count = min(count, len(self.names))
        best = np.argpartition(-scores, count - 1)[:count] if count else np.empty(0, dtype=np.int64)
        order = best[np.lexsort((best, -scores[best]))]
        return [(self.names[place], float(scores[place])) for place in order]

    def save(self, folder: Path) -> None:
        """Save both files, each complete or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        staging = folder / f".{VECTORS_FILE}"
        with staging.open("wb") as file:
            np.save(file, self.vectors)
        os.replace(staging, folder / VECTORS_FILE)
        (folder / NAMES_FILE).write_text(json.dumps(self.names, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "ToolIndex":
        """Load the index as it was saved; ``ValueError`` where names and vectors do not match."""
        names = json.loads((folder / NAMES_FILE).read_text(encoding="utf-8"))
        return cls(names, np.load(folder / VECTORS_FILE))
