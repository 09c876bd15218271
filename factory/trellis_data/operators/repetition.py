"""Texts that say the same again and again."""

from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.findings import Histogram
from trellis_data.layout import Batch
from trellis_data.operator import TextParams, parameter
from trellis_data.operators.text_operator import TextOperator
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import any_in_row
from trellis_data.words import repetition_shares

_SHARES = [step / 20 for step in range(21)]


class _Rules(NamedTuple):
    """Shares above which a row is dropped, in the order of the measures."""

    limits: dict[str, float]
    #: A most frequent run of words counts where it occurs so often.
    least: int


_NAMES = (
    "lines", "line_characters", "top_2_gram_frac", "top_3_gram_frac", "top_4_gram_frac",
    "dup_5_gram_frac", "dup_6_gram_frac", "dup_7_gram_frac", "dup_8_gram_frac", "dup_9_gram_frac",
    "dup_10_gram_frac",
)  # fmt: skip
_RULES: dict[str, _Rules] = {
    #: Gopher's (Rae et al. 2021, arXiv 2112.11446, table A1).
    "web": _Rules(
        dict(zip(_NAMES, (0.3, 0.2, 0.2, 0.18, 0.16, 0.15, 0.14, 0.13, 0.12, 0.11, 0.10), strict=True)),
        least=2,
    ),
    #: Those drop a third of GSM8K's and MATH's solutions, which repeat terms with good reason. These hit what
    #: goes round in circles, and less than one in a hundred of such solutions.
    "chat": _Rules(
        dict(zip(_NAMES, (0.5, 0.4, 0.45, 0.4, 0.4, 0.6, 0.55, 0.5, 0.5, 0.45, 0.45), strict=True)), least=6
    ),
}


def _limit(en: str, zh: str) -> float | None:
    """Declare a parameter for the share above which a row is dropped, in place of the rules' own limit."""
    value: float | None = parameter(
        None,
        ge=0,
        le=1,
        title=Text(en=en, zh=zh),
        help=Text(
            en="Max share of a text's characters (or lines). Defaults to the rule set's "
            "value; 1 disables it.",
            zh="该部分占文本字符（或行）的最大比例。留空则采用所选规则；1 表示关闭。",
        ),
    )
    return value


class RepetitionParams(TextParams):
    """How much of a text may be said before."""

    old_names: ClassVar = {
        "least_words": "min_words",
        **{f"top_{n}": f"top_{n}_gram_frac" for n in range(2, 5)},
        **{f"again_{n}": f"dup_{n}_gram_frac" for n in range(5, 11)},
    }

    rules: Literal["chat", "web"] = parameter(
        "chat",
        title=Text(en="Rules", zh="规则"),
        help=Text(
            en="chat: only drops degenerate loops. web: the strict Gopher rules (Rae et al. 2021).",
            zh="对话与解答：仅针对循环重复的内容。网页：采用严格的 Gopher 规则（Rae 等，2021）。",
        ),
    )
    min_words: int = parameter(
        20,
        ge=1,
        title=Text(en="Min words", zh="最少词数"),
        help=Text(
            en="Shorter texts are skipped. Chinese characters count as words.",
            zh="更短的文本不检查；一个汉字计为一个词。",
        ),
    )
    lines: float | None = _limit("Repeated lines", "重复行")
    line_characters: float | None = _limit("Characters in repeated lines", "重复行的字符")
    top_2_gram_frac: float | None = _limit("Most frequent run of 2 words", "最常见的 2 词组合")
    top_3_gram_frac: float | None = _limit("Most frequent run of 3 words", "最常见的 3 词组合")
    top_4_gram_frac: float | None = _limit("Most frequent run of 4 words", "最常见的 4 词组合")
    dup_5_gram_frac: float | None = _limit("Repeated runs of 5 words", "重复的 5 词组合")
    dup_6_gram_frac: float | None = _limit("Repeated runs of 6 words", "重复的 6 词组合")
    dup_7_gram_frac: float | None = _limit("Repeated runs of 7 words", "重复的 7 词组合")
    dup_8_gram_frac: float | None = _limit("Repeated runs of 8 words", "重复的 8 词组合")
    dup_9_gram_frac: float | None = _limit("Repeated runs of 9 words", "重复的 9 词组合")
    dup_10_gram_frac: float | None = _limit("Repeated runs of 10 words", "重复的 10 词组合")


class Repetition(TextOperator):
    """Drops rows with a repetitive text.

    Three readings of Gopher's rules are our own. The most frequent run counts only where it occurs several
    times: in a short answer any run has a great share. Lines and longer runs count from their second
    occurrence on. Paragraphs have no rule, since a repeated paragraph is made of repeated lines.
    """

    id = "repetition"
    group = "clean"
    title = Text(en="Repetition", zh="重复内容")
    help = Text(
        en="Drops rows with repeated lines or n-grams (Gopher rules; by characters for Chinese).",
        zh="删除重复行或重复词组过多的行（Gopher 规则）；中文按字计算。",
    )
    Params = RepetitionParams
    params: RepetitionParams

    def apply(self, batch: Batch) -> Outcome:
        """Measure every text; the first rule that is broken is the reason."""
        frame = self.texts(batch)
        rules = _RULES[self.params.rules]
        words, shares = repetition_shares(frame["text"], rules.least)
        long = words >= self.params.min_words
        drop: dict[str, np.ndarray] = {}
        for index, rule in enumerate(_NAMES):
            own: float | None = getattr(self.params, rule)
            hits = long & (shares[:, index] > (rules.limits[rule] if own is None else own))
            drop[f"repeated_{rule}"] = any_in_row(batch, frame, pl.Series(hits))
        worst = shares[long].max(axis=1) if long.any() else np.zeros(0)
        return replace(dropping(batch.table, drop), findings={"max_ratio": Histogram.of(worst, _SHARES)})
