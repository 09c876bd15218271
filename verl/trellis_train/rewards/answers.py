"""What of a response counts as its answer, and the number that it is."""

import re
from decimal import Decimal, InvalidOperation

#: A number as people write it: sign, currency, groups of three, decimals.
_NUMBER = re.compile(r"[-+]?\$?\s?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
THINK_END = "</think>"


def after_thinking(response: str) -> str:
    """What follows the last ``</think>``; the whole response where there is none."""
    return response.rpartition(THINK_END)[2].strip()


def as_number(text: str) -> Decimal | None:
    """The number that the text is, currency signs, separators and a final full stop aside; or None."""
    cleaned = text.strip().rstrip(".").strip().removesuffix("%").strip()
    if not cleaned or not _NUMBER.fullmatch(cleaned):
        return None
    try:
        return Decimal(re.sub(r"[,$\s]", "", cleaned))
    except InvalidOperation:
        return None


def squeeze(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())
