"""How code points take part in comparing texts: what separates, what makes words, what stands alone."""

import unicodedata
from functools import cache

import numpy as np

SEPARATOR, WORD, ALONE = 0, 1, 2
#: Size of the basic plane; what lies beyond it (rare ideographs, emoji) stands alone.
PLANE = 0x10000
#: Scripts that are written without spaces: each character is a token of its own.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),  # iteration mark, ideographic zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width Katakana
)
#: Marks that change what is said ("3 + 4" is not "3 - 4") stand alone too, other punctuation separates.
_TELLING_CATEGORIES = frozenset({"Sm", "Sc"})
_TELLING = frozenset("-*/^%#&@")
_WORD_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No"})


@cache
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Build the kind (uint8) and the folded form (uint16) of each code point of the basic plane.

    Folding takes away case and width, so that ``Ａ``, ``A`` and ``a`` are one; a code point whose folded
    form is longer than one character (``ß``) stays as it is.
    """
    kinds = np.zeros(PLANE, dtype=np.uint8)
    folded = np.arange(PLANE, dtype=np.uint16)
    for code in range(PLANE):
        character = chr(code)
        plain = unicodedata.normalize("NFKC", character).casefold()
        if len(plain) == 1 and ord(plain) < PLANE:
            folded[code] = ord(plain)
        category = unicodedata.category(character)
        if category in _WORD_CATEGORIES:
            kinds[code] = WORD
        elif category in _TELLING_CATEGORIES or character in _TELLING:
            kinds[code] = ALONE
    for first, last in _UNSPACED:
        inside = slice(first, last + 1)
        kinds[inside] = np.where(kinds[inside] == WORD, ALONE, kinds[inside])
    # What folds into another kind counts as that kind: half-width Katakana as Katakana.
    return kinds[folded], folded


@cache
def blanks() -> np.ndarray:
    """Mark the code points of the basic plane that are white space (bool)."""
    return np.array([chr(code).isspace() for code in range(PLANE)])
