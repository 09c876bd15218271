"""Making and hashing secrets.

All secrets are 256 random bits, so a plain SHA-256 is as good as a slow hash, and
the prefix lets log redaction recognise them.
"""

import hashlib
import secrets

ADMIN_TOKEN_PREFIX = "trellis_admin_"  # noqa: S105 - a prefix
JOB_TOKEN_PREFIX = "trellis_job_"  # noqa: S105 - a prefix
SESSION_PREFIX = "trellis_session_"
LOGIN_CODE_PREFIX = "trellis_login_"


def new_secret(prefix: str) -> str:
    """Create a random secret whose prefix says what it is for."""
    return prefix + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return the hash of a secret, which is all that the database stores of it."""
    return hashlib.sha256(secret.encode()).hexdigest()
