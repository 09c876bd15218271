"""Files that nobody but their owner may read: keys, tokens, addresses of endpoints."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, in one step: a reader never sees half of it.

    Where that is not possible, on a full disk, nothing of it is left.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
