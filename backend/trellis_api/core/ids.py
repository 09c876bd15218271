"""Short random names for rows, safe in paths and addresses."""

import base64
import re
import secrets
from collections.abc import Iterable

ID_LENGTH = 12


def new_id(prefix: str) -> str:
    """Return ``<prefix>_`` and 12 lower-case base32 characters: 60 bits, so ids don't collide in practice."""
    return f"{prefix}_{base64.b32encode(secrets.token_bytes(8)).decode()[:ID_LENGTH].lower()}"


def id_pattern(prefix: str) -> str:
    """Return the regular expression that IDs with this prefix match."""
    return rf"^{re.escape(prefix)}_[a-z2-7]{{{ID_LENGTH}}}$"


def is_id(value: str, *, prefix: str) -> bool:
    """Tell whether a value has the form of an id, before it becomes part of a path."""
    return re.fullmatch(id_pattern(prefix), value) is not None


def split_ids(parts: Iterable[str]) -> list[str]:
    """Return the IDs of a parameter that is repeated or separated by commas: in order, without duplicates."""
    return list(dict.fromkeys(each.strip() for part in parts for each in part.split(",") if each.strip()))
