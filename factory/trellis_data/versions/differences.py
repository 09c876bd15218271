"""What differs between two versions: rows added, removed and, by a key column, changed.

Chunks that both have cancel out by their ids alone. Of the others only the rows' digests are read,
and compared bucket by bucket, so memory is bounded by a bucket and by one byte a row. Rows count as
often as they occur, and their order does not matter. The outcome is kept beside the store, so that
its pages are read without comparing again; nothing is tidied away while one is read.
"""

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import ValidationError
from trellis_contracts.recipe import Strict

from trellis_data.atomic_files import UNFINISHED, publishing
from trellis_data.versions.hashing import DIGEST, digest_rows
from trellis_data.versions.records import ChunkRef, StoreProblem, Tree, Version
from trellis_data.versions.refs import locked
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import check_page, take_rows

Kind = Literal["added", "removed", "changed"]
#: Rows that are compared at once; about 60 bytes each.
_BUCKET_ROWS = 1_000_000
_LOST, _PAIRED = 1, 2
#: How long a comparison is kept; it is made again where it is asked for later.
_KEPT_S = 7 * 24 * 3600


class Counts(Strict):
    """How many rows differ, and how many do not."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0


class ColumnChange(Strict):
    """A column whose type is another; None where there is no such column."""

    name: str
    before: str | None
    after: str | None


class Difference(Strict):
    """From one version to another."""

    before: str
    after: str
    key: str | None
    total: Counts
    splits: dict[str, Counts]
    columns: list[ColumnChange]
    #: Of both versions, side by side; None where a version has none.
    statistics: tuple[Any, Any]


class _Side(NamedTuple):
    """The rows of a version's split whose chunks the other one does not have."""

    tree: Tree
    split: str
    #: Position of each chunk's first row in the split, and the chunk.
    chunks: list[tuple[int, ChunkRef]]
    rows: int


def compare(store: Store, before: Version, after: Version, key: str | None = None) -> Difference:
    """Compare versions: rows added, removed and (given a column that identifies rows) changed."""
    with locked(store.root / "writing.lock", shared=True):
        folder = _compared(store, before, after, key)
        return Difference.model_validate_json((folder / "difference.json").read_text())


def find_difference(
    store: Store, before: Version, after: Version, key: str | None = None
) -> Difference | None:
    """Return what ``compare`` has found; None if it was not requested or has been cleaned up since."""
    path = _folder(store, before, after, key) / "difference.json"
    try:
        return Difference.model_validate_json(path.read_text())
    except FileNotFoundError:
        return None


def forget_differences(store: Store, kept: set[str]) -> None:
    """Remove comparisons of versions that are not among those kept, and those that are a week old."""
    folders = store.root / "differences"
    for folder in folders.iterdir() if folders.is_dir() else ():
        path = folder / "difference.json"
        try:
            found = Difference.model_validate_json(path.read_text())
            is_old = time.time() - path.stat().st_mtime > _KEPT_S
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            found, is_old = None, True  # somebody was killed while writing it
        is_lost = found is None or not {found.before, found.after} <= kept
        if is_lost or is_old or UNFINISHED in folder.name:
            shutil.rmtree(folder, ignore_errors=True)


def _compared(store: Store, before: Version, after: Version, key: str | None) -> Path:
    """Return the folder with the comparison; create it if it is missing, because cleanup removes it."""
    trees = store.tree(before.commit.tree), store.tree(after.commit.tree)
    _check_key(trees, key)
    folder = _folder(store, before, after, key)
    if not folder.exists():
        with publishing(folder) as unfinished:
            counts = {
                split: _compare_split(store, trees, split, key, unfinished)
                for split in sorted({*trees[0].splits, *trees[1].splits})
            }
            total = Counts(
                **{name: sum(getattr(each, name) for each in counts.values()) for name in Counts.model_fields}
            )
            difference = Difference(
                before=before.id,
                after=after.id,
                key=key,
                total=total,
                splits=counts,
                columns=_columns(*trees),
                statistics=(store.statistics(before), store.statistics(after)),
            )
            (unfinished / "difference.json").write_text(difference.model_dump_json())
    return folder


def read_difference(
    store: Store, difference: Difference, split: str, kind: Kind, *, offset: int = 0, limit: int = 50
) -> list[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Read a page of rows that differ, each as (before, after); None on the side where it does not exist."""
    check_page(offset, limit)
    before, after = store.version(difference.before), store.version(difference.after)
    with locked(store.root / "writing.lock", shared=True):
        folder = _compared(store, before, after, difference.key)
        return _read_page(store, (before, after), folder, split, kind, slice(offset, offset + limit))


def _read_page(
    store: Store, versions: tuple[Version, Version], folder: Path, split: str, kind: Kind, page: slice
) -> list[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    before, after = versions
    if kind == "changed":
        pairs = _load(folder / f"{split}.pairs.npy")[page]
        old = _rows(store, before, split, pairs[:, 0])
        new = _rows(store, after, split, pairs[:, 1])
        return list(zip(old, new, strict=True))
    places = _load(folder / f"{split}.{kind}.npy")[page]
    if kind == "added":
        return [(None, row) for row in _rows(store, after, split, places)]
    return [(row, None) for row in _rows(store, before, split, places)]


def _compare_split(
    store: Store, trees: tuple[Tree, Tree], split: str, key: str | None, folder: Path
) -> Counts:
    sides = _sides(trees, split)
    total = sum(tree.splits[split].rows for tree in trees[1:] if split in tree.splits)
    flags = [np.zeros(side.rows, dtype=np.uint8) for side in sides]
    buckets = max(1, -(-sum(side.rows for side in sides) // _BUCKET_ROWS))
    for bucket in range(buckets):
        _flag_unmatched(_digests(store, sides, bucket, buckets), flags)
    pairs = np.empty((0, 2), dtype=np.int64)
    if key is not None:
        pairs = _pair(store, sides, flags, key, folder)
    counts = Counts(
        removed=int((flags[0] == _LOST).sum()), added=int((flags[1] == _LOST).sum()), changed=len(pairs)
    )
    for side, flag, kind in zip(sides, flags, ("removed", "added"), strict=True):
        np.save(folder / f"{split}.{kind}.npy", _positions(side, np.flatnonzero(flag == _LOST)))
    np.save(folder / f"{split}.pairs.npy", pairs)
    counts.same = total - counts.added - counts.changed
    return counts


def _sides(trees: tuple[Tree, Tree], split: str) -> tuple[_Side, _Side]:
    """Remove the chunks that both versions share, each as often as it occurs, and return what is left."""
    lists = [tree.splits[split].chunks if split in tree.splits else [] for tree in trees]
    shared = Counter(chunk.id for chunk in lists[0]) & Counter(chunk.id for chunk in lists[1])
    made = []
    for tree, chunks in zip(trees, lists, strict=True):
        rest, left, start = Counter(shared), [], 0
        for chunk in chunks:
            if rest[chunk.id]:
                rest[chunk.id] -= 1
            else:
                left.append((start, chunk))
            start += chunk.rows
        made.append(_Side(tree, split, left, sum(chunk.rows for _, chunk in left)))
    return made[0], made[1]


def _digests(store: Store, sides: tuple[_Side, _Side], bucket: int, buckets: int) -> pl.DataFrame:
    """Collect the digests of both sides in a bucket, with each one's side and index among its rows."""
    frames = []
    for number, side in enumerate(sides):
        start = 0
        for _, chunk in side.chunks:
            digests = store.objects.digests(chunk.id)
            at = np.flatnonzero(digests["high"] % np.uint64(buckets) == bucket)
            frames.append(_frame(digests[at], number, at + start))
            start += chunk.rows
    return pl.concat(frames) if frames else _frame(np.empty(0, DIGEST), 0, np.empty(0, np.int64))


def _frame(digests: np.ndarray, side: int, at: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "high": digests["high"].copy(),
            "low": digests["low"].copy(),
            "side": np.full(len(digests), side, np.uint8),
            "at": at.astype(np.int64),
        }
    )


def _flag_unmatched(frame: pl.DataFrame, flags: list[np.ndarray]) -> None:
    """Flag the rows that one side has more often than the other, the later ones of those that are alike."""
    ranked = _ranked(frame).filter(pl.col("rank") >= pl.col("others"))
    for number, flag in enumerate(flags):
        flag[ranked.filter(pl.col("side") == number)["at"].to_numpy()] = _LOST


def _ranked(frame: pl.DataFrame) -> pl.DataFrame:
    """Rank each line among the equal ones on its side, and count those on the other side."""
    same = ["high", "low"]
    mine = pl.len().over([*same, "side"])
    return frame.sort("at").with_columns(
        rank=pl.int_range(pl.len()).over([*same, "side"]), others=pl.len().over(same) - mine
    )


def _pair(
    store: Store, sides: tuple[_Side, _Side], flags: list[np.ndarray], key: str, folder: Path
) -> np.ndarray:
    """Pair rows that were removed and added under the same key: they are one row that changed."""
    buckets = max(1, -(-sum(int(flag.sum()) for flag in flags) // _BUCKET_ROWS))
    spilled = [folder / f"keys-{bucket}.ipc" for bucket in range(buckets)]
    _spill_keys(store, sides, flags, key, spilled)
    found = [np.empty((0, 2), dtype=np.int64)]
    for path in spilled:
        ranked = _ranked(pl.read_ipc_stream(path)).filter(pl.col("rank") < pl.col("others"))
        halves = [
            ranked.filter(pl.col("side") == number).sort("high", "low", "rank")["at"].to_numpy()
            for number in (0, 1)
        ]
        for flag, half in zip(flags, halves, strict=True):
            flag[half] = _PAIRED
        pairs = [_positions(side, half) for side, half in zip(sides, halves, strict=True)]
        found.append(np.stack(pairs, axis=1))
        path.unlink()
    every = np.concatenate(found)
    return every[np.argsort(every[:, 1], kind="stable")]


def _spill_keys(
    store: Store, sides: tuple[_Side, _Side], flags: list[np.ndarray], key: str, spilled: list[Path]
) -> None:
    """Write the digests of the keys of flagged rows to a file for each bucket; each chunk is read once."""
    schema = pa.schema(
        [("high", pa.uint64()), ("low", pa.uint64()), ("side", pa.uint8()), ("at", pa.int64())]
    )
    writers = [pa.ipc.new_stream(str(path), schema) for path in spilled]
    for number, (side, flag) in enumerate(zip(sides, flags, strict=True)):
        start = 0
        for _, chunk in side.chunks:
            at = np.flatnonzero(flag[start : start + chunk.rows])
            if len(at):
                with store.objects.rows(chunk.id) as file:
                    keys = file.read(columns=[key]).take(pa.array(at))
                # A row without a key is nobody's counterpart.
                is_keyed = keys.column(0).is_valid()
                keys, at = keys.filter(is_keyed), at[is_keyed.to_numpy()]
                frame = _frame(digest_rows(keys)[0], number, at + start)
                for bucket, writer in enumerate(writers):
                    mine = frame.filter(pl.col("high") % len(writers) == bucket)
                    writer.write_table(mine.to_arrow().cast(schema))
            start += chunk.rows
    for writer in writers:
        writer.close()


def _positions(side: _Side, at: np.ndarray) -> np.ndarray:
    """Convert indexes among a side's rows to positions in the split."""
    if not side.chunks:
        return at.astype(np.int64)
    starts = np.array([start for start, _ in side.chunks], dtype=np.int64)
    sizes = np.array([chunk.rows for _, chunk in side.chunks], dtype=np.int64)
    ends = np.cumsum(sizes)
    place = np.searchsorted(ends, at, side="right")
    moved: np.ndarray = starts[place] + at - (ends - sizes)[place]
    return moved


def _rows(store: Store, version: Version, split: str, places: np.ndarray) -> Iterator[dict[str, Any]]:
    if not len(places):
        return iter(())
    return iter(take_rows(store, store.tree(version.commit.tree), split, np.asarray(places)).to_pylist())


def _load(path: Path) -> np.ndarray:
    try:
        loaded: np.ndarray = np.load(path, mmap_mode="r")
    except FileNotFoundError:
        raise StoreProblem(
            "split_unknown", f"Neither version has the split '{path.name.split('.')[0]}'."
        ) from None
    return loaded


def _columns(before: Tree, after: Tree) -> list[ColumnChange]:
    old = {column.name: column.type for column in before.columns}
    new = {column.name: column.type for column in after.columns}
    return [
        ColumnChange(name=name, before=old.get(name), after=new.get(name))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _check_key(trees: tuple[Tree, Tree], key: str | None) -> None:
    for tree in trees:
        names = [column.name for column in tree.columns]
        if key is not None and key not in names:
            raise StoreProblem(
                "column_unknown",
                f"Both versions need the column '{key}' that tells rows apart; one has {names}.",
            )


def _folder(store: Store, before: Version, after: Version, key: str | None) -> Path:
    name = hashlib.sha256(f"{before.id} {after.id} {key!r}".encode()).hexdigest()
    return store.root / "differences" / name
