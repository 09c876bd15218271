"""The admin token's file: written once, readable by its owner alone, and the truth for the database."""

from pathlib import Path

from trellis_contracts.private_files import OWNER_ONLY, create_private

from trellis_api.auth import repository
from trellis_api.auth.secrets import ADMIN_TOKEN_PREFIX, hash_secret, new_secret
from trellis_api.auth.service import ADMIN
from trellis_api.core.database import Database


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
    # Of two processes that start together one token wins.
    return token if create_private(path, token + "\n") else _read(path) or token
