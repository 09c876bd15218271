"""Write files with secrets: complete, readable by their owner alone, and never through somebody else's link.

Processes that are not trusted may write to the folders where these files lie. A link that one of them puts
there, in the file's place or where its draft would be, redirects nothing: a draft is a new file with a name
that nobody can guess, and takes the place of a link instead of following it.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_ONLY = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_private(path: Path, text: str) -> None:
    """Write a file or replace it in one step: a reader never sees half of it.

    Where that is not possible, on a full disk, nothing of it is left.
    """
    with _draft(path, text) as draft:
        os.replace(draft, path)


def create_private(path: Path, text: str) -> bool:
    """Write a file unless there is one; whether it is this call's. Of two calls at once, one makes it.

    It is on disk afterwards, even if the power fails. Something that is no file (a link that leads nowhere)
    counts as one.
    """
    with _draft(path, text, is_durable=True) as draft:
        try:
            # Unlike a rename, a link fails where the name is taken.
            os.link(draft, path)
        except FileExistsError:
            return False
    _sync_folder(path.parent)
    return True


def _sync_folder(folder: Path) -> None:
    """Bring a folder's names to disk: a file that is there without its name is lost."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _draft(path: Path, text: str, *, is_durable: bool = False) -> Iterator[Path]:
    """Write the text to a new file beside the final one, and delete it afterwards."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(draft, _NEW, OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
