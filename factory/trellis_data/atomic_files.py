"""Write files and folders atomically: complete under their final name, or absent."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

#: In the names of what is being written.
UNFINISHED = ".unfinished-"


@contextlib.contextmanager
def publishing(folder: Path) -> Iterator[Path]:
    """Yield a folder to write to, which gets its final name only once it is complete and on disk."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f"{folder.name}{UNFINISHED}{uuid.uuid4().hex}")
    unfinished.mkdir()
    try:
        yield unfinished
        for path in unfinished.rglob("*"):
            sync(path)
        sync(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            # Whoever was first has written the same.
            if not folder.is_dir():
                raise
            shutil.rmtree(unfinished)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def whole_folders(parent: Path) -> list[Path]:
    """List the complete folders in ``parent``, by name."""
    return sorted(each for each in parent.iterdir() if UNFINISHED not in each.name)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it exists with all of its text or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}{UNFINISHED}{uuid.uuid4().hex}")
    unfinished.write_text(text, encoding="utf-8")
    sync(unfinished)
    unfinished.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file or folder to disk so that it survives a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
