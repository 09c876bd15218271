"""Hashes of files."""

import hashlib
from pathlib import Path


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
