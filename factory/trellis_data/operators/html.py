"""HTML in texts: taken for what it says, or a reason to drop a row."""

import html
import re
from collections import Counter
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch
from trellis_data.operator import TextParams, parameter
from trellis_data.operators.text_operator import CODE, TextOperator, outside_code, over_rows, put, rewritten
from trellis_data.outcome import Outcome
from trellis_data.row_texts import any_in_row

#: Only what HTML knows counts as a tag: ``a <b and c> d`` and a model's ``<think>`` are no markup.
_NAMES = (
    "a|abbr|acronym|address|area|article|aside|audio|b|base|basefont|bdi|bdo|big|blockquote|body|br|button|"
    "canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|dl|dt|em|"
    "embed|fieldset|figcaption|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hgroup|hr|html|i|"
    "iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter|nav|noframes|noscript|object|"
    "iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter|nav|noframes|noscript|object|"
    "ol|optgroup|option|p|param|picture|pre|progress|q|rp|rt|ruby|s|samp|script|section|select|small|source|"
    "span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|title|"
    "tr|track|tt|u|ul|var|video|wbr"
)
#: An attribute has a value, or is one of those that need none; ``<b and c>`` is arithmetic.
_ATTRIBUTE = r"""\s+[a-zA-Z_:@][\w:.@-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))"""
_FLAG = (
    r"\s+(?:checked|disabled|selected|hidden|required|readonly|multiple|async|defer|controls|autoplay|loop|"
    r"muted|nowrap|noshade|allowfullscreen)"
)
_TAG = rf"</(?:{_NAMES})\s*>|<(?:{_NAMES})(?:{_ATTRIBUTE}|{_FLAG})*\s*/?>|<!--.*?-->|<!doctype[^>]*>"
TAG = rf"(?is){_TAG}"
_TAG_HERE = re.compile(TAG)
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});"
_ENTITY_HERE = re.compile(_ENTITY)
_BLOCK_END = re.compile(
    r"(?i)</(?:p|div|li|tr|h[1-6]|ul|ol|table|blockquote|pre|section|article|dd|dt|header|footer|title)\s*>"
    r"|<(?:br|hr)\b[^<>]*>"
)
_BLOCK_START = re.compile(r"(?i)(?<=[^\s>])(?=<(?:p|li|tr|dt|dd|h[1-6])\b)")
_CELL_END = re.compile(r"(?i)</t[dh]\s*>")
#: The time to parse grows with the square of the depth; what is deeper is stripped without being parsed.
_DEEPEST = 500
_UNSEEN_HERE = re.compile(r"(?is)<(script|style|template|noscript|head)\b.*?</\1\s*>")
_UNSEEN = ["script", "style", "template", "noscript", "head"]


class HtmlParams(TextParams):
    """What becomes of markup."""

    old_names: ClassVar = {"largest_share": "max_ratio"}

    action: Literal["strip", "drop", "keep"] = parameter(
        "strip",
        title=Text(en="Action", zh="处理方式"),
        help=Text(
            en="Keep only the visible text, drop rows with markup, or keep the markup and "
            "only check its share.",
            zh="只保留浏览器会显示的文字、删除含标记的行，或保留标记而只检查占比。",
        ),
    )
    entities: bool = parameter(
        True,
        title=Text(en="Decode entities", zh="转换字符实体"),
        help=Text(
            en="&amp;amp; becomes &, &amp;#20013; becomes 中, even without tags.",
            zh="&amp;amp; 变为 &，&amp;#20013; 变为 中；没有标签时也转换。",
        ),
    )
    max_ratio: float | None = parameter(
        0.5,
        ge=0,
        le=1,
        title=Text(en="Max markup share", zh="标记的最大占比"),
        help=Text(
            en="Drops rows with a larger share of tag characters. Leave empty to disable.",
            zh="若标签占字符的比例超过该值则删除该行。留空则不删除。",
        ),
    )


class Html(TextOperator):
    """Strips markup; code between backticks stays as it is."""

    id = "html"
    group = "clean"
    title = Text(en="HTML and markup", zh="HTML 与标记")
    help = Text(
        en="Converts HTML to plain text and drops rows that are mostly markup. Code in "
        "backticks is unchanged.",
        zh="将 HTML 转为其显示的文字，并删除以标记为主的行；反引号内的代码不受影响。",
    )
    Params = HtmlParams
    params: HtmlParams

    def apply(self, batch: Batch) -> Outcome:
        """Parse and clean only the lines with something that looks like a tag or an entity."""
        frame = self.texts(batch)
        hints = frame["text"].str.contains("<[a-zA-Z/!]|&[#a-zA-Z]")
        found = frame[np.flatnonzero(hints.to_numpy())]
        texts = found["text"].str.replace_all(CODE, "")
        tags = texts.str.contains(TAG)
        counts = Counter({"texts_with_markup": int(tags.sum())})
        drop: dict[str, np.ndarray] = {}
        if self.params.action == "drop":
            drop["has_markup"] = any_in_row(batch, found, tags)
        if self.params.max_ratio is not None and tags.any():
            sizes = over_rows(batch, frame, frame["text"].str.len_chars())
            taken = _markup_length(texts, tags)
            drop["mostly_markup"] = over_rows(batch, found, taken) > self.params.max_ratio * sizes
        new = found["text"]
        if self.params.action == "strip":
            has_entities = texts.str.contains(_ENTITY) if self.params.entities else tags
            new = self._stripped(new, tags | has_entities)
        return rewritten(batch, found, new, drop=drop, counts=+counts)

    def _stripped(self, texts: pl.Series, at: pl.Series) -> pl.Series:
        where = np.flatnonzero(at.to_numpy())
        if len(where) == 0:
            return texts
        work = partial(_visible, entities=self.params.entities)
        done = [outside_code(text, work) for text in texts.gather(where)]
        return put(texts, where, pl.Series(done, dtype=pl.String))


def _markup_length(texts: pl.Series, tags: pl.Series) -> pl.Series:
    left = texts.str.replace_all(TAG, "").str.len_chars().cast(pl.Int64)
    length = texts.str.len_chars().cast(pl.Int64) - left
    return pl.select(pl.when(tags).then(length).otherwise(0)).to_series()


def _visible(text: str, *, entities: bool) -> str:
    """Return what a browser would show of a text with tags; leave everything else unchanged."""
    if not _TAG_HERE.search(text):
        return _ENTITY_HERE.sub(lambda hit: html.unescape(hit.group()), text) if entities else text
    from selectolax.lexbor import LexborHTMLParser

    marked = _BLOCK_END.sub(lambda hit: hit.group() + "\n", text)
    marked = _BLOCK_START.sub("\n", marked)
    marked = _CELL_END.sub(lambda hit: hit.group() + " ", marked)
    if _depth(marked) > _DEEPEST:
        bare = _TAG_HERE.sub("", _UNSEEN_HERE.sub("", marked))
        return _ENTITY_HERE.sub(lambda hit: html.unescape(hit.group()), bare) if entities else bare
    tree = LexborHTMLParser("<body>" + _protected(marked, entities))
    tree.strip_tags(_UNSEEN)
    body = tree.body
    shown = body.text() if body is not None else ""
    return shown[:-1] if shown.endswith("\n") and not text.endswith("\n") else shown


def _depth(text: str) -> int:
    """Return how deep elements may be nested at most, counting those that are never closed."""
    depth = deepest = 0
    for hit in _TAG_HERE.finditer(text):
        tag = hit.group()
        depth = max(0, depth - 1) if tag.startswith("</") else depth + (not tag.endswith("/>"))
        deepest = max(deepest, depth)
    return deepest


def _protected(text: str, entities: bool) -> str:
    """Escape each ``<`` and ``&`` that begins neither a tag nor an entity, so the parser keeps them."""
    parts = []
    end = 0
    for hit in _TAG_HERE.finditer(text):
        parts += [_escaped(text[end : hit.start()], entities), hit.group()]
        end = hit.end()
    return "".join([*parts, _escaped(text[end:], entities)])


def _escaped(text: str, entities: bool) -> str:
    text = re.sub(rf"&(?!{_ENTITY[1:]})", "&amp;", text) if entities else text.replace("&", "&amp;")
    return text.replace("<", "&lt;")
