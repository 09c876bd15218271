"""Words and phrases that must not stand in texts: refusals, toxic language, a list of one's own."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem, TextParams, parameter
from trellis_data.operators.phrases import built_in_phrases, read_phrases
from trellis_data.operators.text_operator import TextOperator, rewritten
from trellis_data.outcome import Outcome
from trellis_data.row_texts import any_in_row

#: Scripts in which words are parted by spaces: there a phrase has to begin and end with a word.
_SPACED = re.compile(r"[0-9_\u0041-\u1aff\u1c80-\u1fff]")


class WordListParams(TextParams):
    """Which phrases, where, and what becomes of them."""

    lists: list[Literal["refusals", "disclaimers", "toxicity"]] = parameter(
        [],
        title=Text(en="Built-in lists", zh="内置词表"),
        help=Text(
            en="Short English and Chinese lists: refusals, AI disclaimers, insults and profanity.",
            zh="中英文短词表：拒答用语、模型声明语、辱骂与脏话。",
        ),
    )
    files: list[str] = parameter(
        [],
        title=Text(en="Word list files", zh="词表文件"),
        help=Text(
            en="Names of the pipeline's input files, with one phrase per line (UTF-8) or row (Parquet).",
            zh="流水线资源中的词表文件名，每行一个词（UTF-8 文本）或每条数据一个词（Parquet）。",
        ),
    )
    phrases: list[str] = parameter(
        [],
        title=Text(en="Phrases", zh="词语"),
        help=Text(en="Additional words and phrases.", zh="补充的词语。"),
    )
    action: Literal["drop", "mask"] = parameter(
        "drop",
        title=Text(en="Action", zh="处理方式"),
        help=Text(en="Drop the row, or mask the phrase.", zh="删除该行，或对词语打码。"),
    )
    mark: str = parameter(
        "***",
        max_length=40,
        title=Text(en="Placeholder", zh="标记"),
        help=Text(en="Text that replaces a phrase.", zh="替换词语的文字。"),
    )
    allowed: int = parameter(
        0,
        ge=0,
        title=Text(en="Allowed", zh="允许次数"),
        help=Text(en="Rows with at most this many phrases are kept.", zh="命中次数不超过该值的行予以保留。"),
    )
    first_characters: int | None = parameter(
        None,
        ge=1,
        title=Text(en="Only at the start", zh="仅限开头"),
        help=Text(
            en="Only count phrases that start within this many characters, e.g. for refusals.",
            zh="仅统计在前若干字符内出现的词语：拒答通常出现在开头。",
        ),
    )


class WordList(TextOperator):
    """Drops rows with phrases of a list, or masks these; upper and lower case are one."""

    id = "word_list"
    group = "clean"
    title = Text(en="Word lists", zh="词表过滤")
    help = Text(
        en="Drops or masks rows with listed phrases (refusals, toxic language or your own).",
        zh="删除含有词表词语（拒答、有害语言或自定义）的行，或对其打码。",
    )
    Params = WordListParams
    params: WordListParams

    def __init__(self, params: WordListParams, context: Context) -> None:
        super().__init__(params, context)
        import ahocorasick

        self._phrases: list[str] = []
        automaton = ahocorasick.Automaton()
        for name, phrases in self._lists():
            for phrase in phrases:
                folded = _folded(phrase.strip())
                if folded and folded not in automaton:
                    automaton.add_word(folded, (name, len(folded)))
                    self._phrases.append(folded)
        automaton.make_automaton()
        self._automaton: Any = automaton

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that there is a phrase to look for."""
        super().check(schema, layout)
        if not any(phrases for _, phrases in self._lists()):
            raise OperatorProblem("word_list_empty", "Name a built-in list, a word list file or phrases.")

    def apply(self, batch: Batch) -> Outcome:
        """Find lines that contain a phrase in one fast pass, and look closely only at those."""
        frame = self.texts(batch)
        lower = frame["text"].str.to_lowercase().str.replace_all("’", "'", literal=True)
        candidates = np.flatnonzero(lower.str.contains_any(self._phrases).to_numpy())
        found = frame[candidates]
        hits = [self._hits(text) for text in found["text"]]
        counts = Counter(name for line in hits for _, _, name in line)
        if self.params.action == "mask":
            pairs = zip(found["text"], hits, strict=True)
            new = pl.Series([self._masked(text, line) for text, line in pairs], dtype=pl.String)
            return rewritten(batch, found, new, counts=counts)
        return replace(self._dropped(batch, found, hits), counts=counts)

    def _dropped(self, batch: Batch, found: pl.DataFrame, hits: list[list[tuple[int, int, str]]]) -> Outcome:
        rows = found["row"].to_numpy()
        number = np.bincount(rows, weights=[len(line) for line in hits], minlength=len(batch))
        beyond = number > self.params.allowed
        drop = {}
        for name in dict.fromkeys(name for line in hits for _, _, name in line):
            named = pl.Series([any(each == name for _, _, each in line) for line in hits], dtype=pl.Boolean)
            drop[f"word:{name}"] = any_in_row(batch, found, named) & beyond
        return rewritten(batch, found, found["text"], drop=drop)

    def _hits(self, text: str) -> list[tuple[int, int, str]]:
        """Find the phrases and their lists; where several overlap, the longest wins."""
        folded = _folded(text)
        spans = []
        for last, (name, size) in self._automaton.iter(folded):
            first = last - size + 1
            if self.params.first_characters is not None and first >= self.params.first_characters:
                continue
            if _is_whole(folded, first, last + 1):
                spans.append((first, last + 1, name))
        spans.sort(key=lambda span: (span[0], -span[1]))
        apart: list[tuple[int, int, str]] = []
        for span in spans:
            if not apart or span[0] >= apart[-1][1]:
                apart.append(span)
        return apart

    def _masked(self, text: str, hits: list[tuple[int, int, str]]) -> str:
        parts, end = [], 0
        for first, last, _ in hits:
            parts += [text[end:first], self.params.mark]
            end = last
        return "".join([*parts, text[end:]])

    def _lists(self) -> list[tuple[str, list[str]]]:
        named: list[tuple[str, list[str]]] = [
            (name, list(built_in_phrases(name))) for name in self.params.lists
        ]
        for name in self.params.files:
            if name not in self.context.resources:
                raise OperatorProblem(
                    "resource_missing", f"There is no file '{name}' among the pipeline's resources."
                )
            named.append((name, read_phrases(self.context.resources[name])))
        return [*named, ("phrases", self.params.phrases)]


def _folded(text: str) -> str:
    """Lower case, character by character: places stay the same, unlike with ``lower`` (which makes İ two)."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(each.lower() if len(each.lower()) == 1 else each for each in text)
    return lower.replace("’", "'")


def _is_whole(text: str, first: int, last: int) -> bool:
    """Return whether a phrase is not part of a longer word, in scripts that separate words by spaces."""
    begins = first == 0 or not (_is_spaced(text[first]) and _is_spaced(text[first - 1]))
    ends = last == len(text) or not (_is_spaced(text[last - 1]) and _is_spaced(text[last]))
    return begins and ends


def _is_spaced(character: str) -> bool:
    return bool(_SPACED.match(character)) and (character.isalnum() or character == "_")
