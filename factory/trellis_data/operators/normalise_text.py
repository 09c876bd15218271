"""Unicode, spaces and line ends brought into one form."""

from collections import Counter
from collections.abc import Callable
from typing import Literal

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch
from trellis_data.operator import TextParams, parameter
from trellis_data.operators.text_operator import (
    TextOperator,
    outside_code_of_all,
    put,
    replace_lines,
    rewritten,
)
from trellis_data.outcome import Outcome

#: Wrongly decoded UTF-8 has at least two odd characters in a row, the first of which was a first byte, or one
#: of those before a space that was a byte of its own.
_MAYBE_MISREAD = "[\u0080-\u052f\u201a\u201e\u221a\u2500-\u25ff][^\u0000-\u007f]|[\u00c2\u00c3] "
#: Characters of which some are not in form NFC: all but the usual ones of Latin, Chinese and Korean.
_MAYBE_NOT_NFC = (
    "[^\u0000-\u02ff\u2010-\u2027\u3001-\u3029\u3030-\u3098\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uff00-\uffef]"
)
_SPACES = "[\u00a0\u1680\u2000-\u200a\u202f\u205f]"


class NormaliseTextParams(TextParams):
    """Into which form texts are brought."""

    repair: bool = parameter(
        True,
        title=Text(en="Fix encoding errors", zh="修复乱码"),
        help=Text(
            en="Fixes mojibake ('schÃ¶n' becomes 'schön') with ftfy.",
            zh="使用 ftfy 修复以错误编码解码的文本（如“schÃ¶n”恢复为“schön”）。",
        ),
    )
    form: Literal["NFC", "NFKC", "none"] = parameter(
        "NFC",
        title=Text(en="Unicode normalization", zh="Unicode 形式"),
        help=Text(
            en="NFC composes accents. NFKC also replaces full-width letters, ligatures and "
            "superscripts, which changes formulas and Chinese punctuation.",
            zh="NFC 合并组合字符。NFKC 还会把全角字母、连字和上标变为普通字符：会改变公式与中文标点。",
        ),
    )
    spaces: bool = parameter(
        True,
        title=Text(en="Collapse spaces", zh="合并空格"),
        help=Text(
            en="Collapses repeated spaces and removes trailing ones. Indentation and code are unchanged.",
            zh="各种空格变为普通空格；行内连续空格合并为一个，行尾空格移除。缩进和代码保持不变。",
        ),
    )
    blank_lines: int | None = parameter(
        2,
        ge=0,
        title=Text(en="Max blank lines", zh="最多空行数"),
        help=Text(
            en="Limits consecutive blank lines. Leave empty for no limit.",
            zh="超出的连续空行将被删减。留空则不处理。",
        ),
    )
    strip: bool = parameter(
        True,
        title=Text(en="Trim", zh="去除首尾空白"),
        help=Text(en="Strips leading and trailing whitespace.", zh="移除文本开头和结尾的空白。"),
    )


class NormaliseText(TextOperator):
    """Brings texts into one form."""

    id = "normalise_text"
    group = "clean"
    title = Text(en="Unicode and whitespace", zh="Unicode 与空白规范化")
    help = Text(
        en="Fixes encoding errors and normalizes Unicode, spaces and line endings. Code is unchanged.",
        zh="修复乱码，统一 Unicode 形式、空格与换行；代码保持原样。",
    )
    Params = NormaliseTextParams
    params: NormaliseTextParams

    def apply(self, batch: Batch) -> Outcome:
        """Normalize texts by expressions over all lines; only misread text or code is handled singly."""
        frame = self.texts(batch)
        new = frame["text"]
        counts: Counter[str] = Counter()
        if self.params.repair:
            new = replace_lines(new, new.str.contains(_MAYBE_MISREAD), _repaired)
            counts["repaired"] = int((new != frame["text"]).sum())
        new = _where(new, "\r", lambda some: some.str.replace_all("\r\n?", "\n"))
        if self.params.form != "none":
            form = self.params.form
            not_yet = _MAYBE_NOT_NFC if form == "NFC" else "[^\\x00-\\x7f]"
            new = _where(new, not_yet, lambda some: some.str.normalize(form))
        new = outside_code_of_all(new, self._spaced)
        if self.params.strip:
            # The first line's indentation belongs to it.
            new = _where(new, r"\A\s", lambda some: some.str.replace(r"\A(?:[^\S\n]*\n)+", ""))
            new = new.str.strip_chars_end()
        return rewritten(batch, frame, new, counts=+counts)

    def _spaced(self, texts: pl.Series) -> pl.Series:
        if self.params.spaces:
            texts = _where(texts, _SPACES, lambda some: some.str.replace_all(_SPACES, " "))
            texts = _where(texts, r"[ \t]\n", lambda some: some.str.replace_all(r"[ \t]+\n", "\n"))
            texts = _where(texts, r"[ \t][ \t]", lambda some: some.str.replace_all(r"(\S)[ \t]{2,}", "$1 "))
        if self.params.blank_lines is not None:
            breaks = self.params.blank_lines + 1
            too_many = rf"(?:[ \t]*\n){{{breaks + 1},}}"
            texts = _where(texts, r"\n[ \t]*\n", lambda some: some.str.replace_all(too_many, "\n" * breaks))
        return texts


def _where(texts: pl.Series, pattern: str, work: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Apply ``work`` only to the texts that match: a search costs a fraction of a replacement."""
    at = np.flatnonzero(texts.str.contains(pattern).to_numpy())
    return put(texts, at, work(texts.gather(at))) if len(at) else texts


def _repaired(text: str) -> str:
    from ftfy import fix_encoding

    return fix_encoding(text)
