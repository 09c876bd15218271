"""Keeps secrets out of everything that a run reports."""

import os
import re
from collections.abc import Iterable, Mapping

from trellis_contracts.secrets import SECRET_SHAPES

MASK = "***"
_SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|KEY)(_|$)",
    re.IGNORECASE,
)
_MIN_SECRET_LENGTH = 6


class Redactor:
    """Replaces the values of secret environment variables, and texts shaped like tokens."""

    def __init__(self, environment: Mapping[str, str], extra_secrets: Iterable[str] = ()) -> None:
        values = {value for name, value in environment.items() if is_secret(name, value)}
        values.update(extra_secrets)
        # The longest first: one secret may begin with another.
        usable = sorted(
            (value for value in values if len(value) >= _MIN_SECRET_LENGTH), key=len, reverse=True
        )
        self._values = re.compile("|".join(re.escape(value) for value in usable)) if usable else None

    def mask(self, text: str) -> str:
        """Replace every secret in the text by ``***``."""
        if self._values is not None:
            text = self._values.sub(MASK, text)
        return SECRET_SHAPES.sub(MASK, text)


def is_secret(name: str, value: str) -> bool:
    """Tell whether a variable's name says that its value is a secret (paths to secrets are not)."""
    return bool(_SECRET_NAME.search(name)) and not name.upper().endswith("_PATH") and not os.path.isabs(value)
