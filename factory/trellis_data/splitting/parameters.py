"""What a split is asked for."""

import re
from typing import Literal, Self

from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.operator import TextParams, parameter

Mode = Literal["random", "stratified", "temporal", "grouped", "semantic"]
#: Column that the split's names are written to.
COLUMN = "split"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_MOST_PARTS = 20


class SplitParams(TextParams):
    """Parameters of ``split``."""

    mode: Mode = parameter(
        "random",
        title=Text(en="Method", zh="划分方式"),
        help=Text(
            en="random, stratified by class, by time, keeping groups together, or keeping "
            "similar texts together.",
            zh="随机、按类别分层、按时间、按组（同组不拆分），或让相似文本始终在一起。",
        ),
    )
    ratios: dict[str, float] = parameter(
        {"train": 0.9, "validation": 0.05, "test": 0.05},
        title=Text(en="Shares", zh="比例"),
        help=Text(
            en="Share of rows per split, adding up to 1. When splitting by time, the first "
            "split is the oldest.",
            zh="各部分所占比例，总和为 1。按时间划分时第一部分最旧。",
        ),
    )
    counts: dict[str, int] | None = parameter(
        None,
        title=Text(en="Row counts", zh="行数"),
        help=Text(
            en="Rows per split, instead of shares. The remaining rows go to the split named in 'Remainder'.",
            zh="用行数代替比例；剩余的行归入“其余部分”。",
        ),
    )
    rest: str = parameter(
        "train",
        title=Text(en="Remainder", zh="其余部分"),
        help=Text(en="Split that gets the remaining rows.", zh="未被行数指定的行所属的部分。"),
    )
    by: str | None = parameter(
        None,
        title=Text(en="Column", zh="依据列"),
        help=Text(
            en="Column with the class, time or group. Scores (decimal numbers) are binned.",
            zh="类别、时间或分组所在的列；小数分数会先分档。",
        ),
    )
    buckets: int = parameter(
        10,
        title=Text(en="Score bins", zh="分数档数"),
        help=Text(en="Number of equal-size bins for scores.", zh="把分数按等量分成多少档。"),
        ge=2,
        le=100,
    )
    similarity: float = parameter(
        0.5,
        title=Text(en="Similarity", zh="相似度"),
        help=Text(
            en="Rows with at least this Jaccard similarity (and chains of them) stay in the same split.",
            zh="相似度（词片段 Jaccard）达到该值的行不会被拆开，连锁相似的行也一样。",
        ),
        ge=0.3,
        le=1.0,
    )
    shingle: int = parameter(
        3,
        title=Text(en="Shingle length", zh="片段长度"),
        help=Text(
            en="Words per shingle; characters for Chinese.",
            zh="作为一个片段比较的词数；中文按字计算。",
        ),
        ge=1,
        le=20,
        unit="words",
    )

    compare: Literal["auto", "words", "meaning"] = parameter(
        "auto",
        title=Text(en="Compare by", zh="相似依据"),
        help=Text(
            en="Word n-grams only, or also semantics with the all-MiniLM-L6-v2 sentence "
            "encoder (Latin script). 'auto' uses semantics if the encoder is installed.",
            zh="仅按词片段，或同时按语义（句向量模型 all-MiniLM-L6-v2，仅拉丁字母文本）。"
            "auto 在已安装该模型时按语义。",
        ),
    )
    cosine: float = parameter(
        0.8,
        title=Text(en="Cosine similarity", zh="余弦相似度"),
        help=Text(
            en="Rows with at least this cosine similarity stay in the same split.",
            zh="语义余弦相似度达到该值的行不会被拆开。",
        ),
        ge=0.3,
        le=1.0,
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.mode in ("stratified", "temporal", "grouped") and not self.by:
            raise ValueError(f"a {self.mode} split needs 'by', the column that it goes by")
        if self.counts is None:
            self._check_ratios()
        elif not self.counts or min(self.counts.values()) < 1:
            raise ValueError("'counts' names at least one part, each with at least one row")
        elif self.rest in self.counts:
            raise ValueError(f"part '{self.rest}' gets the rest, so it has no number of its own")
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"'{name}' is no name of a part: letters, digits, '_' and '-', 32 at most")
        if len(self.names) > _MOST_PARTS:
            raise ValueError(f"{len(self.names)} parts are too many, {_MOST_PARTS} are allowed")
        return self

    def _check_ratios(self) -> None:
        if len(self.ratios) < 2 or min(self.ratios.values()) <= 0:
            raise ValueError("'ratios' names at least two parts, each with a share above 0")
        if abs(sum(self.ratios.values()) - 1.0) > 1e-6:
            raise ValueError(f"the shares add up to {sum(self.ratios.values()):g}, not to 1")

    @property
    def names(self) -> list[str]:
        """The parts in order; with numbers of rows the rest comes first."""
        return list(self.ratios) if self.counts is None else [self.rest, *self.counts]
