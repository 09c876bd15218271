"""Logs of the services: bounded in size, readable while they grow."""

import time
from collections.abc import Iterator
from pathlib import Path

MAX_BYTES = 16 * 1024**2
KEPT = 3


def rotate(path: Path) -> None:
    """Copy a log that grew too large aside and empty it.

    The service goes on writing to the same file, which it opened for appending.
    """
    if not path.exists() or path.stat().st_size < MAX_BYTES:
        return
    for number in range(KEPT, 1, -1):
        older = path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))
    with path.open("rb") as source, path.with_name(f"{path.name}.1").open("wb") as target:
        while block := source.read(1024**2):
            target.write(block)
    path.open("wb").close()


def tail(path: Path, count: int) -> list[str]:
    """Read the last lines of a log without reading all of it."""
    if not path.exists():
        return []
    with path.open("rb") as handle:
        size = handle.seek(0, 2)
        handle.seek(max(0, size - count * 400 - 4096))
        return handle.read().decode(errors="replace").splitlines()[-count:]


def follow(paths: dict[str, Path], count: int) -> Iterator[tuple[str, str]]:
    """Yield the last lines of several logs, then new ones, forever; a truncated log is followed again."""
    positions: dict[str, int] = {}
    for name, path in paths.items():
        positions[name] = path.stat().st_size if path.exists() else 0
        for line in tail(path, count):
            yield name, line
    while True:
        for name, path in paths.items():
            size = path.stat().st_size if path.exists() else 0
            positions[name] = 0 if size < positions[name] else positions[name]
            if size == positions[name]:
                continue
            with path.open("rb") as handle:
                handle.seek(positions[name])
                block = handle.read(size - positions[name])
            whole, _, _ = block.rpartition(b"\n")
            if whole:
                positions[name] += len(whole) + 1
                for line in whole.decode(errors="replace").split("\n"):
                    yield name, line
        time.sleep(0.3)
