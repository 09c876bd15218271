"""Web addresses: masked, removed, or a reason to drop a row."""

from collections import Counter
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch
from trellis_data.operator import TextParams, parameter
from trellis_data.operators.text_operator import (
    TextOperator,
    outside_code_of_all,
    over_rows,
    rewritten,
)
from trellis_data.outcome import Outcome
from trellis_data.row_texts import any_in_row

# Ends before Chinese text and full-width marks, which addresses hold in escaped form; brackets only in pairs.
_CHARACTER = r"[^\s<>\"'`()\[\]{}\p{Han}\p{Hiragana}\p{Katakana}，。；：！？、（）【】《》「」“”‘’…]"
_LAST = r"[^\s<>\"'`()\[\]{}\p{Han}\p{Hiragana}\p{Katakana}，。；：！？、（）【】《》「」“”‘’….,;:!?*_]"
_REST = rf"(?:(?:{_CHARACTER}|\([^\s()]*\))*(?:{_LAST}|\([^\s()]*\)))"
URL = rf"(?i)(?-u:\b)(?:(?:https?|ftp)://|www\.[a-z0-9-]+\.){_REST}"
_LINK = rf"(?i)!?\[([^\[\]\n]*)\]\(\s*{URL.removeprefix('(?i)')}[^()\n]*\)"
_HINTS = ["://", "www."]


class UrlsParams(TextParams):
    """What becomes of addresses."""

    old_names: ClassVar = {"largest_share": "max_ratio"}

    action: Literal["mask", "remove", "drop", "keep"] = parameter(
        "mask",
        title=Text(en="Action", zh="处理方式"),
        help=Text(
            en="Replace them with a placeholder, remove them (Markdown links keep their "
            "text), drop the row, or keep them and only check their share.",
            zh="替换为标记、移除（Markdown 链接保留文字）、删除该行，或保留而只检查占比。",
        ),
    )
    mark: str = parameter(
        "[URL]",
        max_length=40,
        title=Text(en="Placeholder", zh="标记"),
        help=Text(en="Text that replaces a URL.", zh="替换网址的文字。"),
    )
    max_ratio: float | None = parameter(
        None,
        ge=0,
        le=1,
        title=Text(en="Max share", zh="最大占比"),
        help=Text(
            en="Drops rows with a larger share of URL characters.",
            zh="若网址占字符的比例超过该值则删除该行。",
        ),
    )
    keep_code: bool = parameter(
        True,
        title=Text(en="Skip code", zh="不改动代码"),
        help=Text(
            en="URLs in code (in backticks) are unchanged.",
            zh="代码（反引号内）中的网址保持不变。",
        ),
    )


class Urls(TextOperator):
    """Masks, removes or drops addresses."""

    id = "urls"
    group = "clean"
    title = Text(en="URLs", zh="网址")
    help = Text(
        en="Masks or removes URLs and drops rows that are mostly URLs.",
        zh="掩码或移除网址；删除以网址为主的行。",
    )
    Params = UrlsParams
    params: UrlsParams

    def apply(self, batch: Batch) -> Outcome:
        """Search only the lines that may contain a URL."""
        frame = self.texts(batch)
        texts = frame["text"]
        candidates = np.flatnonzero(texts.str.contains_any(_HINTS).to_numpy())
        found = frame[candidates]
        number = found["text"].str.count_matches(URL)
        counts = Counter({"urls": int(number.sum())})
        drop: dict[str, np.ndarray] = {}
        if self.params.action == "drop":
            drop["has_url"] = any_in_row(batch, found, number > 0)
        if self.params.max_ratio is not None:
            left = found["text"].str.replace_all(URL, "").str.len_chars().cast(pl.Int64)
            taken = over_rows(batch, found, found["text"].str.len_chars().cast(pl.Int64) - left)
            sizes = over_rows(batch, frame, texts.str.len_chars())
            drop["mostly_urls"] = taken > self.params.max_ratio * sizes
        new = found["text"]
        if self.params.action in ("mask", "remove"):
            new = self._replaced(found["text"])
        return rewritten(batch, found, new, drop=drop, counts=+counts)

    def _replaced(self, texts: pl.Series) -> pl.Series:
        return outside_code_of_all(texts, self._in_place) if self.params.keep_code else self._in_place(texts)

    def _in_place(self, texts: pl.Series) -> pl.Series:
        if self.params.action == "remove":
            return texts.str.replace_all(_LINK, "$1").str.replace_all(URL, "")
        return texts.str.replace_all(URL, self.params.mark.replace("$", "$$"))
