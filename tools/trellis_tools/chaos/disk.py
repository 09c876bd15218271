"""A small file system of its own for the data root, which can be filled without harm to the machine."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
#: Room for a campaign's jobs; while it is full, so much of the machine's memory is taken.
SIZE_BYTES = 1536 * MIB
_FILLING = "filling"
_CHUNK_BYTES = 4 * MIB


@dataclass(frozen=True)
class SmallDisk:
    """Where it is mounted."""

    folder: Path

    def fill(self) -> None:
        """Take every byte that is left."""
        with (self.folder / _FILLING).open("ab", buffering=0) as file:
            for size in (_CHUNK_BYTES, 4096, 1):
                with contextlib.suppress(OSError):  # there is no room for so much any more
                    while file.write(b"\0" * size) == size:
                        continue

    def clear(self) -> None:
        """Give it back."""
        (self.folder / _FILLING).unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int = SIZE_BYTES) -> Iterator[SmallDisk | str]:
    """Mount one on an empty folder; where that is not possible, the reason."""
    problem = _mount(folder, size_bytes)
    if problem is not None:
        yield problem
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607 - mount's own place


def _mount(folder: Path, size_bytes: int) -> str | None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=700", "tmpfs", os.fspath(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except FileNotFoundError:
        return "the mount command is not installed"
    if done.returncode:
        return f"cannot mount a file system: {done.stderr.strip()}"
    return None
