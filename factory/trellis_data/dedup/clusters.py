"""From joined rows to what stays: survivors, the file of clusters, the findings of a report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.dedup.number_columns import Column, Ragged
from trellis_data.dedup.sources import Keep, previews
from trellis_data.layout import Batch
from trellis_data.outcome import Outcome, dropping

#: Similarity of rows to the rows that stay in their place, pair by pair; the rows ascend.
Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]

CLUSTERS_FILE = "clusters.parquet"
KEEP_FILE = "keep.npy"
#: Largest clusters that the report names.
NAMED_CLUSTERS = 20
#: Members of a cluster, and members in all, whose text can be looked at in the file of clusters.
SHOWN_OF_CLUSTER = 20
SHOWN_IN_ALL = 200_000
_SIZES = (2, 3, 5, 10, 100, 1000)
_BLOCK = 1 << 16
_SCHEMA = pa.schema(
    {
        "cluster": pa.int64(),  # 0 is the largest
        "size": pa.int64(),
        "position": pa.int64(),
        "survives": pa.bool_(),
        "similarity": pa.float32(),  # to the row that survives
        "text": pa.string(),  # the beginning; null beyond the bounds above
    }
)


def reduce_clusters(
    scans: Sequence[Path], folder: Path, parents: np.ndarray, keep: Keep, similarity: Similarity
) -> dict[str, Any]:
    """Write which rows stay and who is in which cluster; ``parents`` is a flattened forest of rows."""
    sizes = np.bincount(parents, minlength=len(parents)).astype(np.uint32)
    members = np.flatnonzero(sizes[parents] > 1)
    best = _survivors(scans, parents, keep)
    stays = np.ones(len(parents), dtype=bool)
    stays[members] = best[parents[members]] == members
    np.save(folder / KEEP_FILE, stays)
    near = np.ones(len(members), dtype=np.float32)
    gone = ~stays[members]
    near[gone] = similarity(members[gone], best[parents[members[gone]]])
    roots = np.flatnonzero(sizes > 1)
    roots = roots[np.argsort(-sizes[roots].astype(np.int64), kind="stable")]
    shown = Ragged(scans, "preview", np.uint8)
    _write_clusters(folder / CLUSTERS_FILE, roots, sizes, parents, members, stays, near, shown)
    removed = int(gone.sum())
    return {
        "rows": len(parents),
        "removed": removed,
        "rate": removed / len(parents) if len(parents) else 0.0,
        "clusters": len(roots),
        "cluster_sizes": _histogram(sizes[roots]),
        "largest": _largest(roots[:NAMED_CLUSTERS], sizes, best, shown),
        "file": CLUSTERS_FILE,
    }


def apply_clusters(batch: Batch, reduced: Path, reason: str) -> Outcome:
    """Drop the rows of a batch that do not stay."""
    stays = np.load(reduced / KEEP_FILE, mmap_mode="r")[batch.start : batch.start + len(batch)]
    return dropping(batch.table, {reason: ~np.asarray(stays)})


def _survivors(scans: Sequence[Path], parents: np.ndarray, keep: Keep) -> np.ndarray:
    """Choose the row to keep for each root."""
    from trellis_data.dedup.union_find import survivors

    if keep == "first":
        return np.arange(len(parents), dtype=np.int64)
    best = np.full(len(parents), -1, dtype=np.int64)
    survivors(parents, Column(scans, "rank", np.float64).whole(), best)
    return best


def _histogram(sizes: np.ndarray) -> dict[str, int]:
    """Count clusters by size: ``{"2": 10, "3-4": 2, …}``."""
    counts: dict[str, int] = {}
    for low, high in zip(_SIZES, (*_SIZES[1:], None), strict=True):
        label = f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}-{high - 1}"
        counts[label] = int(((sizes >= low) & (sizes < (high or np.inf))).sum())
    return counts


def _largest(roots: np.ndarray, sizes: np.ndarray, best: np.ndarray, shown: Ragged) -> list[dict[str, Any]]:
    named = []
    for root in roots:
        row = best[[root]]
        named.append(
            {"size": int(sizes[root]), "survivor": int(row[0]), "text": previews(shown, row)[0]},
        )
    return named


def _write_clusters(
    path: Path,
    roots: np.ndarray,
    sizes: np.ndarray,
    parents: np.ndarray,
    members: np.ndarray,
    stays: np.ndarray,
    near: np.ndarray,
    shown: Ragged,
) -> None:
    number = np.zeros(len(parents), dtype=np.uint32)
    number[roots] = np.arange(len(roots), dtype=np.uint32)
    order = np.argsort(number[parents[members]], kind="stable")
    clusters = number[parents[members[order]]]
    # How many of its cluster come before a member.
    place = np.arange(len(order)) - np.searchsorted(clusters, clusters, side="left")
    has_text = (place < SHOWN_OF_CLUSTER) & (np.cumsum(place < SHOWN_OF_CLUSTER) <= SHOWN_IN_ALL)
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        for first in range(0, len(order), _BLOCK):
            block = order[first : first + _BLOCK]
            rows = members[block]
            columns = {
                "cluster": clusters[first : first + _BLOCK].astype(np.int64),
                "size": sizes[parents[rows]].astype(np.int64),
                "position": rows,
                "survives": stays[rows],
                "similarity": near[block],
                "text": _texts(rows, has_text[first : first + _BLOCK], shown),
            }
            writer.write_table(pa.table(columns, schema=_SCHEMA))


def _texts(rows: np.ndarray, wanted: np.ndarray, shown: Ragged) -> pa.Array:
    texts: list[str | None] = [None] * len(rows)
    at = np.flatnonzero(wanted)
    at = at[np.argsort(rows[at])]
    if len(at):
        for index, text in zip(at, previews(shown, rows[at]), strict=True):
            texts[index] = text
    return pa.array(texts, pa.string())
