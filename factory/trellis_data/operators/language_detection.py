"""Languages of many short texts: by script, by common words, and where neither decides by lingua."""

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import yaml

from trellis_data.words import buffers, hashes_of, tables

#: Of texts without a language: formulas, numbers, code.
UNKNOWN = "und"
#: Languages that their common words can decide.
_VOTING = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "sv", "tr", "id", "vi", "ru", "uk")
#: The languages that are told apart; codes of ISO 639-1.
CODES = frozenset(
    {*_VOTING, "zh", "ja", "ko", "ar", "fa", "hi", "th", "el", "he", "cs", "ro", "hu", "da", "fi"}
)
_HAN, _KANA, _HANGUL = r"\p{Han}", r"[\p{Hiragana}\p{Katakana}]", r"\p{Hangul}"
_LETTER = r"\p{L}"
#: A character of a script without spaces says as much as some letters of others.
_WEIGHT = 3
#: Common words decide where so many are of one language, a share of all, and twice as many as of the next.
_LEAST_VOTES, _LEAST_SHARE, _LEAST_LEAD = 3, 0.12, 2.0

#: ... or so many, where no other language has one.
_LEAST_ALONE = 2
#: A word or two (``printf hello``) are in a language only where that is nearly certain.
_FEW_WORDS, _LEAST_OF_FEW = 4, 0.95


class Languages(NamedTuple):
    """One of each a text."""

    codes: np.ndarray  # str
    confidences: np.ndarray  # float64


class LanguageDetection:
    """Decides between some languages."""

    def __init__(self, candidates: list[str]) -> None:
        self._candidates = candidates
        self._voting = [code for code in candidates if code in _VOTING]
        bits: dict[int, int] = {}
        for index, code in enumerate(self._voting):
            for word in hashes_of(_common_words()[code]):
                bits[int(word)] = bits.get(int(word), 0) | 1 << index
        self._known = np.array(sorted(bits), dtype=np.uint64)
        self._bits = np.array([bits[int(word)] for word in self._known], dtype=np.uint64)
        self._lingua: Any = None

    def detect(self, texts: pl.Series) -> Languages:
        """Detect the language of each text and the confidence (0 to 1; 1 if the script decides)."""
        codes = np.full(len(texts), "", dtype=object)
        confidences = np.ones(len(texts))
        self._by_script(texts, codes)
        self._by_words(texts, codes, confidences)
        open_ = np.flatnonzero(codes == "")
        if len(open_):
            codes[open_], confidences[open_] = self._by_lingua(texts.gather(open_).to_list())
        return Languages(codes.astype(str), confidences)

    def _by_script(self, texts: pl.Series, codes: np.ndarray) -> None:
        counted = pl.DataFrame({"text": texts}).select(
            letters=pl.col("text").str.count_matches(_LETTER),
            han=pl.col("text").str.count_matches(_HAN),
            kana=pl.col("text").str.count_matches(_KANA),
            hangul=pl.col("text").str.count_matches(_HANGUL),
        )
        letters, han, kana, hangul = (counted[name].to_numpy().astype(np.int64) for name in counted.columns)
        wide = han + kana + hangul
        is_wide = wide * _WEIGHT > letters - wide
        # Japanese is written with some kana in every sentence; a name in kana makes Chinese none.
        found = np.where(hangul > han + kana, "ko", np.where(kana * 10 > han, "ja", "zh"))
        for code in ("zh", "ja", "ko"):
            if code in self._candidates:
                codes[is_wide & (wide > 0) & (found == code)] = code
        codes[letters < 2] = np.where(codes[letters < 2] == "", UNKNOWN, codes[letters < 2])

    def _by_words(self, texts: pl.Series, codes: np.ndarray, confidences: np.ndarray) -> None:
        from trellis_data.word_kernels import votes

        open_ = np.flatnonzero(codes == "")
        if len(open_) == 0 or not self._voting:
            return
        counted, words = votes(
            *buffers(texts.gather(open_)), *tables(), self._known, self._bits, len(self._voting)
        )
        order = np.argsort(-counted, axis=1, kind="stable")
        lines = np.arange(len(open_))
        best = counted[lines, order[:, 0]]
        next_best = counted[lines, order[:, 1]] if len(self._voting) > 1 else np.zeros_like(best)
        sure = (best >= _LEAST_VOTES) & (best >= _LEAST_SHARE * words) & (best >= _LEAST_LEAD * next_best)
        sure |= (best >= _LEAST_ALONE) & (next_best == 0)
        codes[open_[sure]] = np.array(self._voting, dtype=object)[order[sure, 0]]
        confidences[open_[sure]] = best[sure] / (best[sure] + next_best[sure])

    def _by_lingua(self, texts: list[str]) -> tuple[list[str], list[float]]:
        if self._lingua is None:
            self._lingua = _load_lingua(self._candidates)
        codes, confidences = [], []
        every = self._lingua.compute_language_confidence_values_in_parallel(texts)
        for text, values in zip(texts, every, strict=True):
            best = values[0]
            is_told = best.value >= (_LEAST_OF_FEW if len(text.split()) < _FEW_WORDS else 1e-9)
            codes.append(best.language.iso_code_639_1.name.lower() if is_told else UNKNOWN)
            confidences.append(float(best.value))
        return codes, confidences


@cache
def _common_words() -> dict[str, list[str]]:
    text = files(__package__).joinpath("common_words.yaml").read_text(encoding="utf-8")
    words: dict[str, list[str]] = yaml.safe_load(text)
    return words


def _load_lingua(candidates: list[str]) -> Any:
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [getattr(IsoCode639_1, code.upper()) for code in candidates]
    # Three-letter statistics alone: five times as fast and a fifth of the memory.
    return LanguageDetectorBuilder.from_iso_codes_639_1(*codes).with_low_accuracy_mode().build()
