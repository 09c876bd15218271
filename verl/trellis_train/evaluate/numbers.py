"""Numbers as people write them in a text: signs, currency, groups of digits, fractions, units."""

import re
from fractions import Fraction

_SIGN = "-+\u2212"
_CURRENCY = r"\\?[$€£¥₹₩₽]"
#: Groups of three, and of two and three as in India; more digits after a comma make it another number.
_DIGITS = r"(?:\d{1,3}(?:(?:,|\{,\}|,\\!)\d{2,3})*(?:,|\{,\}|,\\!)\d{3}(?!\d)|\d+)"
_DECIMAL = rf"(?:{_DIGITS}(?:\.\d+)?|(?<!\.)\.\d+)"
#: A sign belongs to the number unless something stands before it that it is taken from.
_PREFIX = rf"(?:(?<![A-Za-z\d)}}\].])(?P<sign>[{_SIGN}])\s?)?(?:{_CURRENCY}\s?(?P<inner>[{_SIGN}])?)?"
_LATEX = r"\\[dt]?frac\s*\{(?P<above>[-\d.,]+)\}\s*\{(?P<below>[\d.,]+)\}"
NUMBER = re.compile(
    # Not from the middle of a number or of a word such as x2.
    rf"(?<![A-Za-z_\d])(?<!\d\.){_PREFIX}(?:{_LATEX}"
    rf"|(?P<whole>\d+)[ \u00a0](?P<part>\d+)/(?P<of>[1-9]\d*)(?![\d./])"
    rf"|(?P<first>{_DECIMAL})(?:\s?/\s?(?P<second>[1-9]\d*(?:\.\d+)?)(?![\d/]))?)"
)
#: Longer ones are no answers, and Python refuses to read them as numbers.
_MAX_DIGITS = 400


def find_numbers(text: str) -> list[str]:
    """Find all numbers of the text from left to right, each as it is written."""
    return [match.group().strip() for match in NUMBER.finditer(text)]


def read_number(text: str) -> Fraction | None:
    """Return the value of ``text`` if it is exactly one number, else None.

    >>> read_number("$1,234.50"), read_number("-3/4"), read_number("1 1/2"), read_number("12 apples")
    (Fraction(2469, 2), Fraction(-3, 4), Fraction(3, 2), None)
    """
    match = NUMBER.fullmatch(text.strip())
    if match is None or len(text) > _MAX_DIGITS:
        return None
    parts = match.groupdict()
    if parts["above"] is not None:
        value = _divide(parts["above"], parts["below"])
    elif parts["whole"] is not None:
        value = Fraction(int(parts["whole"])) + Fraction(int(parts["part"]), int(parts["of"]))
    else:
        value = _divide(parts["first"], parts["second"] or "1")
    is_negative = any(sign in ("-", "\u2212") for sign in (parts["sign"], parts["inner"]))
    return None if value is None else -value if is_negative else value


def _divide(above: str, below: str) -> Fraction | None:
    try:
        return Fraction(_bare(above)) / Fraction(_bare(below))
    except (ValueError, ZeroDivisionError):  # 1.2.3, or a fraction without value
        return None


def _bare(digits: str) -> str:
    return re.sub(r"[,{}!\\\s]", "", digits)
