"""Finds the final answer in a response or in a reference solution."""

import re
from decimal import Decimal, InvalidOperation

#: A number as people write it: sign, currency, groups of three, decimals.
_NUMBER = re.compile(r"[-+]?\$?\s?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
_GSM8K = re.compile(r"####\s*([^\n]*)")
THINK_END = "</think>"


def after_thinking(response: str) -> str:
    """What follows the last ``</think>``; the whole response where there is none."""
    return response.rpartition(THINK_END)[2].strip()


def find_gsm8k_answer(text: str) -> str | None:
    """The text after the last ``####`` on its line, or None."""
    matches = _GSM8K.findall(text)
    answer = matches[-1].strip() if matches else ""
    return answer or None


def find_boxed(text: str) -> str | None:
    r"""The content of the last complete ``\boxed{...}``, braces inside it balanced; or None."""
    start = text.rfind(r"\boxed{")
    while start >= 0:
        depth, begin = 1, start + len(r"\boxed{")
        for position in range(begin, len(text)):
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            if depth == 0:
                return text[begin:position].strip() or None
        start = text.rfind(r"\boxed{", 0, start)
    return None


def find_reference_answer(solution: str) -> str:
    r"""The answer of a worked solution: after ``####``, else in ``\boxed{}``, else all of it."""
    return find_gsm8k_answer(solution) or find_boxed(solution) or solution.strip()


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
