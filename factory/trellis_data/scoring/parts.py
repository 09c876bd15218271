"""The parts of a row's quality: each from 0 to 1, each telling one thing that a person can check.

Texts are those of one row, joined; NaN says that a part cannot be told, such as the relevance of an answer
to no prompt.
"""

from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl
import yaml

from trellis_data.operators.text_operator import CODE
from trellis_data.words import buffers, hashes_of, head, repetition_shares, tables

#: Words over which diversity is taken: a longer text is not less diverse for being long.
_WINDOW = 50
#: Columns of the measures of repetition that count: lines, runs of two to five words.
_SAID_AGAIN = slice(1, 6)
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("（", "）"), ("【", "】"), ("「", "」"), ("《", "》"))
_SENTENCE_END = r"""[.!?。！？…:：;；"'”’»)）\]】」』}》`*_|>~]\s*\z|[\p{So}\p{Sk}]\s*\z"""
#: Words up to which a text may end without a mark: a name or a number is a whole answer.
_SHORT = 12
#: Marks of chat templates that should not be in a text, and a cut-off template variable.
_LEFT_OVER = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|assistant|>", "<|user|>",
    "[INST]", "[/INST]", "<<SYS>>", "<s>", "</s>", "### Response:", "### Instruction:",
]  # fmt: skip


def length_part(words: np.ndarray, good_length: int) -> np.ndarray:
    """Score how close a text's length is to a good one, on a log scale; longer texts get the full score."""
    grown: np.ndarray = np.minimum(1.0, np.log1p(words) / np.log1p(good_length))
    return grown


def diversity_part(texts: pl.Series) -> np.ndarray:
    """Compute the mean share of distinct words in a moving window (MATTR, Covington and McFall 2010)."""
    from trellis_data.word_kernels import diversity

    shares: np.ndarray = diversity(*buffers(head(texts)), *tables(), _WINDOW)
    return shares.astype(np.float64)


def repetition_part(texts: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Count the words of each text, and return also one minus its greatest share of repetition."""
    words, shares = repetition_shares(texts)
    return words, 1.0 - shares[:, _SAID_AGAIN].max(axis=1).astype(np.float64)


def relevance_part(prompts: pl.Series, answers: pl.Series) -> np.ndarray:
    """Return the share of terms that prompt and answer have in common, of the one with fewer of them.

    Terms are words and Chinese characters that are not among the most frequent ones, and pairs of Chinese
    characters: an answer often names one character of the question's word (水循环: 水从海洋 ...). It tells an
    answer to another question from one to this; a short answer ('Paris') has few terms and scores low.
    """
    from trellis_data.word_kernels import overlap

    shares: np.ndarray = overlap(*buffers(head(prompts)), *buffers(head(answers)), *tables(), _stop_words())
    return shares.astype(np.float64)


def format_part(texts: pl.Series, words: np.ndarray) -> np.ndarray:
    """Return the share of four checks that hold: closed fences, paired brackets, an end, no markup."""
    prose = texts.str.replace_all(CODE, "`")
    frame = pl.DataFrame({"text": texts, "prose": prose})
    checks = frame.select(
        fences=pl.col("text").str.count_matches("```", literal=True) % 2 == 0,
        brackets=pl.all_horizontal(
            pl.col("prose").str.count_matches(opening, literal=True)
            == pl.col("prose").str.count_matches(closing, literal=True)
            for opening, closing in _PAIRS
        ),
        ending=pl.col("prose").str.slice(-8).str.contains(_SENTENCE_END),
        remnants=~pl.col("text").str.contains_any(_LEFT_OVER),
    ).with_columns(ending=pl.col("ending") | pl.Series(words <= _SHORT))
    share: np.ndarray = checks.cast(pl.Float64).mean_horizontal().to_numpy().copy()
    return share


@cache
def _stop_words() -> np.ndarray:
    """Return the sorted hashes of the most frequent words of the languages that are detected by words."""
    text = files("trellis_data.operators").joinpath("common_words.yaml").read_text(encoding="utf-8")
    words = {word for words in yaml.safe_load(text).values() for word in words} | set(_FURTHER)
    return np.unique(hashes_of(sorted(words)))


#: What the lists by which languages are told leave out, since other languages have these words too.
_FURTHER = (
    "a", "an", "in", "on", "at", "by", "as", "or", "if", "do", "does", "did", "i", "me", "my", "we", "us",
    "our", "he", "him", "his", "she", "her", "it", "its", "them", "but", "so", "no", "than", "then", "there",
    "please", "s", "t", "am", "all", "any", "some", "into", "out", "up", "more", "just", "also", "would",
    "give", "tell",
    # Chinese characters that say how a sentence is built, and those of questions and requests.
    *"的了着过是在有和与或及也都就还又很更最不没无我你您他她它们这那哪其之为以于从到对把被让给向",
    *"什么怎样何吗呢吧啊请个些种一二三会能可要将等而且但如果因所由并则即做出说用上下中里",
)  # fmt: skip
