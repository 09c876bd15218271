"""Texts that say the same again and again."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.findings import Histogram
from trellis_data.layout import Batch
from trellis_data.operator import TextParams, knob
from trellis_data.operators.text_operator import TextOperator
from trellis_data.outcome import Outcome, dropping
from trellis_data.texts import any_in_row
from trellis_data.words import repetition_shares

_SHARES = [step / 20 for step in range(21)]


def _limit(default: float, en: str, zh: str) -> float:
    """A share above which a row is dropped; 1 switches the rule off."""
    value: float = knob(
        default,
        ge=0,
        le=1,
        title=Text(en=en, zh=zh),
        help=Text(
            en="Largest share of a text's characters (or lines) that may be this; 1 switches the rule off.",
            zh="该部分占文本字符（或行）的最大比例；1 表示关闭此规则。",
        ),
    )
    return value


class RepetitionParams(TextParams):
    """How much of a text may be said before; the defaults are Gopher's (Rae et al. 2021, table A1)."""

    least_words: int = knob(
        20,
        ge=1,
        title=Text(en="Least words", zh="最少词数"),
        help=Text(
            en="Shorter texts are not looked at; a Chinese character counts as a word.",
            zh="更短的文本不检查；一个汉字计为一个词。",
        ),
    )
    lines: float = _limit(0.3, "Repeated lines", "重复行")
    line_characters: float = _limit(0.2, "Characters in repeated lines", "重复行的字符")
    top_2: float = _limit(0.2, "Most frequent run of 2 words", "最常见的 2 词组合")
    top_3: float = _limit(0.18, "Most frequent run of 3 words", "最常见的 3 词组合")
    top_4: float = _limit(0.16, "Most frequent run of 4 words", "最常见的 4 词组合")
    again_5: float = _limit(0.15, "Repeated runs of 5 words", "重复的 5 词组合")
    again_6: float = _limit(0.14, "Repeated runs of 6 words", "重复的 6 词组合")
    again_7: float = _limit(0.13, "Repeated runs of 7 words", "重复的 7 词组合")
    again_8: float = _limit(0.12, "Repeated runs of 8 words", "重复的 8 词组合")
    again_9: float = _limit(0.11, "Repeated runs of 9 words", "重复的 9 词组合")
    again_10: float = _limit(0.10, "Repeated runs of 10 words", "重复的 10 词组合")


class Repetition(TextOperator):
    """Drops rows with a repetitive text, by the rules of Gopher (arXiv 2112.11446, table A1).

    Three readings of our own. The most frequent run counts only where it occurs at least twice: in a short
    answer any run has a great share. Lines and longer runs count from their second occurrence on. Paragraphs
    have no rule of their own, since a repeated paragraph is made of repeated lines.
    """

    id = "repetition"
    group = "clean"
    title = Text(en="Repetition", zh="重复内容")
    help = Text(
        en="Drops rows with texts that repeat lines or runs of words (Gopher's rules); Chinese by "
        "characters.",
        zh="删除重复行或重复词组过多的行（Gopher 规则）；中文按字计算。",
    )
    Params = RepetitionParams
    params: RepetitionParams
    #: The rules in the order of the measures.
    _RULES: ClassVar[tuple[str, ...]] = (
        "lines", "line_characters", "top_2", "top_3", "top_4",
        "again_5", "again_6", "again_7", "again_8", "again_9", "again_10",
    )  # fmt: skip

    def apply(self, batch: Batch) -> Outcome:
        """Measure every text; the first rule that is broken is the reason."""
        frame = self.texts(batch)
        words, shares = repetition_shares(frame["text"])
        long = words >= self.params.least_words
        drop: dict[str, np.ndarray] = {}
        for index, rule in enumerate(self._RULES):
            hits = long & (shares[:, index] > getattr(self.params, rule))
            drop[f"repeated_{rule}"] = any_in_row(batch, frame, pl.Series(hits))
        worst = shares[long].max(axis=1) if long.any() else np.zeros(0)
        return replace(dropping(batch.table, drop), findings={"largest_share": Histogram.of(worst, _SHARES)})
