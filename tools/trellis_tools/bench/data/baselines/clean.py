"""The cleaning that all sides do: wrong decoding, NFC, control characters, spaces; no short texts."""

import re
import unicodedata

from ftfy import TextFixerConfig, fix_text

SHORTEST = 20
_CONFIG = TextFixerConfig(
    unescape_html=False,
    fix_latin_ligatures=False,
    fix_character_width=False,
    uncurl_quotes=False,
    fix_line_breaks=True,
    normalization="NFC",
)
_SPACES = re.compile(r"[^\S\n]+")


def clean(text: str) -> str:
    """Clean a text."""
    if text.isascii():
        # What ftfy would find out with more effort: there is no wrong decoding and nothing to compose here.
        text = (
            "".join(each for each in text if each >= " " or each in "\n\t")
            if not text.isprintable()
            else text
        )
    else:
        text = unicodedata.normalize("NFC", fix_text(text, _CONFIG))
    return _SPACES.sub(" ", text).strip()
