"""What of a response counts as its answer, and the number that it is."""

import re
from decimal import Decimal, InvalidOperation

#: A number as people write it: sign, currency, groups of three, decimals.
_NUMBER = re.compile(r"[-+]?\$?\s?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
THINK_END = "</think>"


def after_thinking(response: str) -> str:
    """Return the text after the last ``</think>``; the whole response if there is none."""
    return response.rpartition(THINK_END)[2].strip()


def as_number(text: str) -> Decimal | None:
    """Parse the text as a number, ignoring currency signs, separators and a final period; or None."""
    cleaned = text.strip().rstrip(".").strip().removesuffix("%").strip()
    if not cleaned or not _NUMBER.fullmatch(cleaned):
        return None
    try:
        return Decimal(re.sub(r"[,$\s]", "", cleaned))
    except InvalidOperation:
        return None


def squeeze(text: str) -> str:
    """Replace every run of white space by one space."""
    return " ".join(text.split())
