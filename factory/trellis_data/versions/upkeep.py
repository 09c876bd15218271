"""Keeping a store in order: what nothing leads to goes, and what is there is what was stored."""

from collections.abc import Callable, Iterable

import pyarrow as pa
from trellis_contracts.recipe import Strict

from trellis_data.versions.differences import forget_differences
from trellis_data.versions.hashing import digest_rows
from trellis_data.versions.objects import chunk_id_of
from trellis_data.versions.records import StoreProblem
from trellis_data.versions.refs import locked
from trellis_data.versions.store import Store


class Collected(Strict):
    """What was removed."""

    files: int
    size_bytes: int


def collect_garbage(
    store: Store, keep: Iterable[str] | Callable[[], Iterable[str]] = (), *, wait_s: float = 60.0
) -> Collected:
    """Remove what no branch, no tag and none of the commits in ``keep`` leads to.

    A callable is asked when nobody writes any more, so that it knows of all that was published. Nobody
    records a version meanwhile: whoever writes holds the lock that this waits for, so an object that is
    written and not yet reachable is never taken.
    """
    with locked(store.root / "writing.lock", wait_s=wait_s):
        reachable = _reachable(store, keep() if callable(keep) else keep)
        files = size = 0
        for object_id, path in store.objects.all():
            if object_id not in reachable:
                files, size = files + 1, size + path.stat().st_size
                path.unlink()
        for path in store.objects.unfinished.iterdir():
            path.unlink()
        store.refs.sweep()
        forget_differences(store, reachable)
    return Collected(files=files, size_bytes=size)


def verify(store: Store) -> list[str]:
    """Describe what is damaged or missing; empty if every version is intact. Reads all data."""
    problems: list[str] = []
    checked: set[str] = set()
    for tip in _tips(store):
        try:
            for version in store.history(tip):
                if version.commit.tree in checked:
                    continue
                checked.add(version.commit.tree)
                tree = store.tree(version.commit.tree)
                for split in tree.splits.values():
                    for chunk in split.chunks:
                        if chunk.id not in checked:
                            checked.add(chunk.id)
                            problems += _verify_chunk(store, chunk.id, chunk.rows)
                store.statistics(version)
        except StoreProblem as problem:
            problems.append(problem.message)
    return problems


def _verify_chunk(store: Store, chunk_id: str, rows: int) -> list[str]:
    try:
        with store.objects.rows(chunk_id) as file:
            table = file.read()
        digests, _ = digest_rows(table)
        stored = store.objects.digests(chunk_id)
    except StoreProblem as problem:
        return [problem.message]
    except (pa.ArrowException, OSError, ValueError) as error:
        return [f"The chunk {chunk_id} cannot be read: {error}"]
    is_whole = chunk_id_of(table.schema, digests) == chunk_id and len(digests) == rows
    if not is_whole or digests.tobytes() != stored.tobytes():
        return [f"The chunk {chunk_id} does not hold the rows that were stored."]
    return []


def _reachable(store: Store, keep: Iterable[str]) -> set[str]:
    reachable: set[str] = set()
    waiting = [*_tips(store), *keep]
    while waiting:
        version_id = waiting.pop()
        if version_id in reachable:
            continue
        commit = store.version(version_id).commit
        waiting += commit.parents
        reachable.add(version_id)
        if commit.statistics:
            reachable.add(commit.statistics)
        if commit.tree not in reachable:
            reachable.add(commit.tree)
            splits = store.tree(commit.tree).splits.values()
            reachable |= {chunk.id for split in splits for chunk in split.chunks}
    return reachable


def _tips(store: Store) -> list[str]:
    return [*store.refs.all("branches").values(), *store.refs.all("tags").values()]
