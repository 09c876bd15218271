"""Scores by the words that answer and reference share: BLEU (Papineni et al. 2002) and ROUGE (Lin 2004)."""

import re
from collections.abc import Sequence
from typing import Any, cast

from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer
from sacrebleu.metrics import BLEU
from trellis_contracts.evaluation import BenchmarkTask, OverlapScorer, Verdict

from trellis_train.evaluate.benchmark import Problem, Scored
from trellis_train.evaluate.custom.scorer import PlainScorer
from trellis_train.evaluate.scored import unanswered

_CHINESE = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff])")


class OverlappingAnswers(PlainScorer):
    """The overlap, 0 to 1; an answer is correct from a threshold on.

    BLEU is sacrebleu's of one sentence (effective order, exponential smoothing), ROUGE the F-measure of
    rouge-score without stemming. Chinese characters are words of their own in both.
    """

    def __init__(self, task: BenchmarkTask) -> None:
        super().__init__(task)
        settings = cast("OverlapScorer", self.settings)
        self._kind, self._threshold = settings.kind, settings.threshold
        self.metrics = (settings.kind, "accuracy")
        self._bleu = {name: BLEU(effective_order=True, tokenize=name) for name in ("13a", "zh")}
        if settings.kind != "bleu":
            self._rouge = RougeScorer([settings.kind], tokenizer=_Tokenizer())

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score the overlap with the reference."""
        if not answer.strip():
            return unanswered(self.metrics)
        value = self._measure(answer, problem.gold)
        is_right = value >= self._threshold
        verdict = Verdict.CORRECT if is_right else Verdict.WRONG
        parts = {self._kind: value, "accuracy": float(is_right)}
        return Scored(verdict, value, answer.strip(), parts=parts)

    def _measure(self, answer: str, reference: str) -> float:
        if self._kind == "bleu":
            bleu = self._bleu["zh" if _CHINESE.search(reference) else "13a"]
            # Sums of logarithms end a hair above 1.
            return min(1.0, float(bleu.sentence_score(answer, [reference]).score) / 100)
        return float(self._rouge.score(reference, answer)[self._kind].fmeasure)

    def manifest(self) -> dict[str, Any]:
        """Describe the settings, including sacrebleu's signature."""
        signature = str(self._bleu["13a"].get_signature()) if self._kind == "bleu" else "no stemming"
        return super().manifest() | {"overlap": signature}


class _Tokenizer:
    """That of rouge-score, which knows letters and digits only, and each Chinese character."""

    def __init__(self) -> None:
        self._latin = DefaultTokenizer(use_stemmer=False)

    def tokenize(self, text: str) -> Sequence[str]:
        tokens: list[str] = []
        for part in _CHINESE.split(text):
            tokens += [part] if _CHINESE.fullmatch(part) else self._latin.tokenize(part)
        return tokens
