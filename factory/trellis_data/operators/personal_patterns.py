"""Where personal data stand in a text: patterns, and the checks that tell them from look-alikes."""

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Literal, NamedTuple

Kind = Literal["key", "email", "resident_id", "bank_card", "ip", "phone"]


class Span(NamedTuple):
    """A place in a text and what stands there."""

    start: int
    stop: int
    kind: Kind


#: What a text must match (as a Rust expression) for a kind to be looked for: cheap, and never too narrow.
HINTS: dict[Kind, str] = {
    "key": r"(?i)\b(?:sk|pk|rk|gh[pousr]|glpat|hf|npm|xox[abeprs]|AKIA|ASIA|AIza|LTAI|eyJ|github_pat)"
    r"[-_A-Za-z0-9]{12}"
    r"|PRIVATE KEY-----|(?:api[-_ ]?key|secret|token|password|passwd|密钥|密码|口令)[^\n]{0,12}[:=：]",
    "email": r"@[A-Za-z0-9-]",
    "resident_id": r"[0-9]{17}[0-9Xx]",
    "bank_card": r"[0-9](?:[ -]?[0-9]){12}",
    "ip": r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?i)[23][0-9a-f]{3}:[0-9a-f:]",
    "phone": r"[0-9](?:[ ().\-–]{0,2}[0-9]){6}",
}

#: For kinds whose expression is slow: one of these stands in every text that it matches, whatever the case.
WORDS: dict[Kind, list[str]] = {
    "key": ["sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat", "hf_", "npm_", "xox",
            "akia", "asia", "aiza", "ltai", "eyj", "github_pat", "private key", "api", "secret", "token",
            "passw", "密钥", "密码", "口令"],
}  # fmt: skip

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_+-])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)
_RESIDENT = re.compile(
    r"(?<![0-9A-Za-z])[1-8]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[0-9Xx]"
    r"(?![0-9A-Za-z])"
)
#: The first two digits: provinces and what is like one (GB/T 2260).
_PROVINCES = frozenset(
    {
        *range(11, 16),
        *range(21, 24),
        *range(31, 38),
        *range(41, 47),
        *range(50, 55),
        *range(61, 66),
        71,
        81,
        82,
        83,
    }
)
_RESIDENT_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_RESIDENT_CHECK = "10X98765432"
#: Digits in a row, or in groups of four (American Express: 4-6-5) with one kind of separator.
_CARD = re.compile(
    r"(?<![0-9A-Za-z.,])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}(?:\1\d{1,3})?|\d{4}([ -])\d{6}\2\d{5})"
    r"(?![0-9A-Za-z])(?![.,]\d)"
)
#: Prefixes and lengths of Visa, Mastercard, American Express, Discover, JCB, Diners and UnionPay.
_CARD_ISSUER = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12}|35\d{14}|3[068]\d{12}"
    r"|62\d{14,17}"
)
_IPV4 = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w]|\.\d)"
)
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,35}(?![\w:])")
#: What stands before four numbers that are a version or a section of a document.
_VERSION_BEFORE = re.compile(
    r"(?:\b(?:v|ver|version|release|build|section|chapter|firmware|driver|kernel|rev|sec|fig|table)\.?"
    r"|§|版本号?|第|==|>=|<=|~=|[\w)]/)\s*[:：]?\s*$",
    re.I,
)
_KEY_PREFIXED = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{20,200}|[spr]k_(?:live|test)_[A-Za-z0-9]{16,200}"
    r"|gh[pousr]_[A-Za-z0-9]{30,255}"
    r"|github_pat_[A-Za-z0-9_]{40,255}|glpat-[A-Za-z0-9_-]{20,64}|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,200}|A(?:KI|SI)A[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|LTAI[A-Za-z0-9]{12,30}"
    r"|eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000})(?![A-Za-z0-9_-])",
    re.S,
)
_KEY_ASSIGNED = re.compile(
    r"(?:api[-_ ]?key|access[-_ ]?key|secret(?:[-_ ]?key)?|(?:auth|access|bearer)?[-_ ]?token|password|passwd"
    r"|密钥|密码|口令)"
    r"[\"']?\s*(?:[:=：]|is|是|为)\s*[\"']?([A-Za-z0-9+/_=.!@#$%^&*-]{12,200})",
    re.I,
)
#: Bits a character; words of languages and names of variables have less, random keys more.
_LEAST_ENTROPY = 3.2
_CHINESE_MOBILE = re.compile(
    r"(?<![0-9A-Za-z.])(?<!\d-)(?:(?:\+|00)?86[ -]?)?1[3-9]\d(?:([ -]?)\d{4}\1\d{4})"
    r"(?![0-9A-Za-z])(?![.=-]\d)"
)
_CHINESE_LANDLINE = re.compile(
    r"(?<![0-9A-Za-z.-])(?:\+86[ -]?)?(?:0(?:10|2\d|[3-9]\d{2})[- ]|[(（]0(?:10|2\d|[3-9]\d{2})[)）] ?)"
    r"[2-8]\d{2,3}[- ]?\d{4}(?![0-9A-Za-z])(?![.-]\d)"
)
_SERVICE_LINE = re.compile(r"(?<![0-9A-Za-z.-])400-(?:\d{3}-\d{4}|\d{4}-\d{3})(?![0-9A-Za-z-])")
#: With its country's prefix, or in a form that only telephone numbers have.
_ABROAD = re.compile(r"(?<![0-9A-Za-z+])\+[1-9](?:[ ().\-–]{0,2}\d){6,14}(?![0-9A-Za-z])")
_AT_HOME = re.compile(
    r"(?<![0-9A-Za-z.+-])(?:\(\d{2,5}\) ?\d(?:[ \-]?\d){5,8}|0?\d{2,4}[-. ]\d{3,4}[-. ]\d{3,4})"
    r"(?![0-9A-Za-z])(?![.-]\d)"
)


def find_personal(text: str, kinds: list[Kind], *, regions: list[str], private_addresses: bool) -> list[Span]:
    """Find personal data of these kinds; where two overlap, the more certain kind wins."""
    finders: dict[Kind, Callable[[], Iterator[tuple[int, int]]]] = {
        "key": lambda: _keys(text),
        "email": lambda: _whole(_EMAIL, text, lambda _: True),
        "resident_id": lambda: _whole(_RESIDENT, text, is_resident_id),
        "bank_card": lambda: _whole(_CARD, text, is_bank_card),
        "ip": lambda: _addresses(text, private_addresses),
        "phone": lambda: _phones(text, regions),
    }
    found: list[Span] = []
    for kind, finder in finders.items():
        if kind not in kinds:
            continue
        taken = list(found)
        found += [
            Span(start, stop, kind)
            for start, stop in finder()
            if all(stop <= other.start or start >= other.stop for other in taken)
        ]
    return sorted(found)


def is_resident_id(number: str) -> bool:
    """Validate a Chinese resident identity number: province, birthday, check digit (GB 11643)."""
    if int(number[:2]) not in _PROVINCES:
        return False
    try:
        date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, _RESIDENT_WEIGHTS, strict=False))
    return _RESIDENT_CHECK[total % 11] == number[17].upper()


def is_bank_card(number: str) -> bool:
    """Return whether the digits belong to a known card issuer and pass the Luhn check."""
    digits = re.sub(r"[ -]", "", number)
    if not _CARD_ISSUER.fullmatch(digits) or len(set(digits)) < 4:
        return False
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _whole(pattern: re.Pattern[str], text: str, is_right: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    for hit in pattern.finditer(text):
        if is_right(hit.group()):
            yield hit.span()


def _keys(text: str) -> Iterator[tuple[int, int]]:
    spans = []
    for hit in _KEY_PREFIXED.finditer(text):
        value = hit.group()
        # Without a digit it is words that are joined.
        if value.startswith("-----") or (re.search(r"\d", value) and _entropy(value) >= _LEAST_ENTROPY):
            spans.append(hit.span())
    for hit in _KEY_ASSIGNED.finditer(text):
        value = hit.group(1)
        is_mixed = re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
        if is_mixed and _entropy(value) >= _LEAST_ENTROPY:
            spans.append(hit.span(1))
    yield from _apart(spans)


def _entropy(text: str) -> float:
    """Compute the entropy in bits per character from how often each character occurs."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _addresses(text: str, private: bool) -> Iterator[tuple[int, int]]:
    for pattern in (_IPV4, _IPV6):
        for hit in pattern.finditer(text):
            before = text[max(0, hit.start() - 16) : hit.start()]
            if _VERSION_BEFORE.search(before):
                continue
            try:
                address = ipaddress.ip_address(hit.group().rstrip(":"))
            except ValueError:
                continue
            if private or address.is_global:
                yield hit.span()


def _phones(text: str, regions: list[str]) -> Iterator[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    if "CN" in regions:
        for pattern in (_CHINESE_MOBILE, _CHINESE_LANDLINE, _SERVICE_LINE):
            spans += [hit.span() for hit in pattern.finditer(text)]
    others = [region for region in regions if region != "CN"]
    spans += [hit.span() for hit in _ABROAD.finditer(text) if _is_valid(hit.group(), None)]
    for hit in _AT_HOME.finditer(text) if others else ():
        if any(_is_valid(hit.group(), region) for region in others):
            spans.append(hit.span())
    yield from _apart(spans)


def _apart(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans in order, without those that overlap an earlier one."""
    end = 0
    for start, stop in sorted(spans):
        if start >= end:
            end = stop
            yield start, stop


def _is_valid(number: str, region: str | None) -> bool:
    """Return whether a number can be dialed in a region and is written as is usual there."""
    import phonenumbers

    grouping = phonenumbers.Leniency.VALID if region is None else phonenumbers.Leniency.STRICT_GROUPING
    return bool(phonenumbers.PhoneNumberMatcher(number, region, leniency=grouping).has_next())
