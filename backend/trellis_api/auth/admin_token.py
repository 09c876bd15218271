"""The admin token's file: written once, readable by its owner alone, and the truth for the database."""

import os
from pathlib import Path

from trellis_api.auth import repository
from trellis_api.auth.secrets import ADMIN_TOKEN_PREFIX, hash_secret, new_secret
from trellis_api.auth.service import ADMIN
from trellis_api.core.database import Database

OWNER_ONLY = 0o600


def ensure_admin_token(database: Database, *, path: Path) -> str:
    """Write the token at the first start; afterwards make the database follow the file.

    Whoever replaces the file and restarts the API has a new token, and the old one is void.
    """
    token = _read(path)
    if token is None:
        token = _create(path)
    with database.write() as session:
        repository.replace_access_token(session, name=ADMIN, token_hash=hash_secret(token))
    return token


def _read(path: Path) -> str | None:
    try:
        token = path.read_text().strip()
    except FileNotFoundError:
        return None
    if path.stat().st_mode & 0o077:
        path.chmod(OWNER_ONLY)
    return token or None


def _create(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    token = new_secret(ADMIN_TOKEN_PREFIX)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, OWNER_ONLY)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link fails where the file exists: of two processes that start together one token wins.
        os.link(draft, path)
    except FileExistsError:
        token = _read(path) or token
    finally:
        draft.unlink()
    return token
