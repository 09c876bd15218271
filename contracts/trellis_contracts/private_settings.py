"""Settings that open the platform itself: no job and no process that works on data is given them."""

import re
from collections.abc import Collection, Mapping

#: The ways to its database, broker and API, the judges with their addresses, and the key of W&B.
PRIVATE_SETTINGS = frozenset(
    {
        "TRELLIS_WANDB_API_KEY",
        "TRELLIS_DATABASE_URL",
        "TRELLIS_REDIS_URL",
        "TRELLIS_TOKEN",
        "TRELLIS_JUDGES",
    }
)
#: What secrets are called. Values of these are left out where a process has no use for any.
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_ID)?$", re.IGNORECASE)
#: The way to Ray is a secret as well.
_SECRET_PREFIXES = ("AWS_", "RAY_AUTH_")


def without_secrets(environment: Mapping[str, str], kept: Collection[str] = ()) -> dict[str, str]:
    """Return an environment without the private settings and without secrets, except those named."""
    return {
        name: value
        for name, value in environment.items()
        if name not in PRIVATE_SETTINGS
        and (name in kept or not (_SECRET_NAME.search(name) or name.startswith(_SECRET_PREFIXES)))
    }
