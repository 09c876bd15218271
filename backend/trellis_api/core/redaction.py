"""Takes secrets out of texts before they are kept or logged."""

import logging
import re
from typing import Any

from trellis_contracts.secrets import SECRET_SHAPES

#: A cheap look that decides whether the expression is worth running.
_HINTS = ("trellis_", "hf_", "sk-", "gh", "AKIA", "://", "earer ")
MASK = "[secret]"


def redact(text: str) -> str:
    """Return the text with everything masked that looks like a token, key or password."""
    if not any(hint in text for hint in _HINTS):
        return text
    return SECRET_SHAPES.sub(MASK, text)


def has_secret(value: Any) -> bool:
    """Tell whether any text of a structure, names included, looks like a token, key or password."""
    if isinstance(value, dict):
        return any(has_secret(key) or has_secret(item) for key, item in value.items())
    if isinstance(value, list):
        return any(has_secret(item) for item in value)
    return isinstance(value, str) and redact(value) != value


def redact_tree(value: Any) -> Any:
    """Return the same structure with every text redacted, and values under secret-sounding names masked."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_tree(item) for item in value]
    if isinstance(value, dict):
        return {key: _mask(str(key), item) for key, item in value.items()}
    return value


_SECRET_NAME = re.compile(r"(?i)(^|_)(api_?key|secret|password|passwd|access_?key)$|(^|_)(token)$")


def _mask(name: str, value: Any) -> Any:
    if isinstance(value, str) and value and _SECRET_NAME.search(name):
        return MASK
    return redact_tree(value)


class RedactingFilter(logging.Filter):
    """Cleans a record before any formatter sees it; formatters may rely on its arguments, so they stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact in place, and let everything pass."""
        if isinstance(record.msg, str):
            record.msg = redact(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(redact(item) if isinstance(item, str) else item for item in record.args)
        message = record.getMessage()
        cleaned = redact(message)
        if cleaned != message:
            # A secret inside an object, or put together from several arguments.
            record.msg, record.args = cleaned, ()
        if record.exc_info and not record.exc_text:
            # Formatters keep a traceback that is there: errors quote addresses and values.
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
        return True


def install_log_redaction() -> None:
    """Redact what every handler of this process writes; access logs hold addresses with login codes."""
    for name in ("", "uvicorn", "uvicorn.access", "uvicorn.error", "celery"):
        for handler in logging.getLogger(name).handlers:
            if not any(isinstance(item, RedactingFilter) for item in handler.filters):
                handler.addFilter(RedactingFilter())
