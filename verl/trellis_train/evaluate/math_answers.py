"""Whether two answers to a mathematical question are the same: math-verify, and what the question allows."""

import re

from trellis_train.evaluate.numbers import read_number
from trellis_train.rewards.math_check import compare_expressions

_PERCENT = re.compile(r"\s*\\?(?:%|％|percent(?:age)?\b|per cent\b)\s*", re.IGNORECASE)
#: The question, not one of its quantities, is about percents.
_ASKS_PERCENT = re.compile(
    r"\b(?:what|which|how many|as an?|in|the|find)\b[^.?!\d]{0,60}?percent", re.IGNORECASE
)
_SPACING = re.compile(r"(?<!\\)\\(?:[,;:! ]|left(?![a-z])|right(?![a-z])|quad|qquad|displaystyle)\s*")
_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_LETTER = re.compile(r"\(?([A-Z])\)?")
#: ``x = 14,400`` says 14,400; math-verify would read two numbers behind an equals sign.
_ASSIGNED = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?\s*=\s*(?=[^=]+$)")
_MIXED = re.compile(r"(-?)(\d+) (\d+/\d+)")
#: A number and what is counted, in plain words of two letters or more.
_COUNTED = re.compile(r"([-\u2212]?[\d.,/]+)((?: [A-Za-z]{2,}\.?){1,4})")
#: Words that change the number.
_QUANTITIES = re.compile(r"\b(?:pi|or|and|to|hundred|thousand|million|billion|dozen|half|sqrt|over|times)\b")
#: Digits behind the point to which decimals are compared, as math-verify does.
_PLACES = 6


def are_same_answers(found: str, wanted: str, question: str = "") -> bool | None:
    r"""Tell whether ``found`` is the reference ``wanted``; None where that took longer than the limit.

    A percent sign is a hundredth: ``50\%`` is ``0.5`` and ``\frac12``. Where the question asks for percents
    the sign may also be left out or added: ``50`` is ``50\%`` there, and nowhere else.
    """
    left, right = _tidy(found), _tidy(wanted)
    if "=" not in right and _ASSIGNED.match(left):
        left = _tidy(_ASSIGNED.sub("", left, count=1))
    if left == right:
        return bool(left)
    shares = [bool(_PERCENT.search(text)) for text in (left, right)]
    if not any(shares):
        return _compare(left, right)
    bare = [_PERCENT.sub("", text) for text in (left, right)]
    hundredths = [f"({text})/100" if share else text for text, share in zip(bare, shares, strict=True)]
    if (all(shares) or shares[1] or _ASKS_PERCENT.search(question)) and _compare(bare[0], bare[1]):
        return True
    return False if all(shares) else _compare(hundredths[0], hundredths[1])


def _compare(left: str, right: str) -> bool | None:
    if read_number(right) is not None:
        counted = _COUNTED.fullmatch(left)
        left = counted.group(1) if counted and not _QUANTITIES.search(counted.group(2)) else left
    numbers = read_number(left), read_number(right)
    if numbers[0] is not None and numbers[1] is not None:
        if numbers[0] == numbers[1]:
            return True
        if "," not in left + right:  # with a comma it may be a list
            is_rounded = "." in left + right
            return is_rounded and round(numbers[0], _PLACES) == round(numbers[1], _PLACES)
    sums = [_MIXED.sub(r"\1(\2+\3)", text) if _MIXED.fullmatch(text) else text for text in (left, right)]
    return compare_expressions(sums[0], sums[1])


def _tidy(text: str) -> str:
    """Remove formatting from an answer that does not change its value."""
    shown = text.strip().strip("$").strip()
    shown = _SPACING.sub(" ", shown.replace(r"\dfrac", r"\frac").replace(r"\tfrac", r"\frac"))
    shown = shown.replace(r"\$", "").replace("{,}", ",")
    shown = re.sub(r"(?<=\d), (?=\d{3}\b)", ",", shown) if r"\!" in text else shown
    whole = _TEXT.fullmatch(shown.strip())
    shown = whole.group(1) if whole else shown
    shown = " ".join(shown.split()).rstrip(".").strip()
    letter = _LETTER.fullmatch(shown)
    return letter.group(1) if letter else shown
