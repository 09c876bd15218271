"""Keeps rows by a score: within bounds, or the best ones of all."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch, Layout
from trellis_data.operator import GlobalOperator, Params, parameter
from trellis_data.outcome import Outcome, dropping
from trellis_data.scoring.scores import check_number, scores_of

_SCORES, _VERDICTS = "scores.npy", "verdicts.npy"
#: What becomes of a row; the codes of reasons in the order of the verdicts, 0 goes on.
_REASONS = ("no_score", "score_low", "score_high", "not_among_best")
_BINS = 40


class FilterByScoreParams(Params):
    """Which rows go on."""

    score: str = parameter(
        "quality.total",
        min_length=1,
        title=Text(en="Score", zh="分数"),
        help=Text(
            en="Numeric column or field, e.g. quality.total or difficulty.",
            zh="数值列或其分项，如 quality.total、difficulty。",
        ),
    )
    minimum: float | None = parameter(
        None,
        title=Text(en="Min", zh="最低"),
        help=Text(en="Minimum score; rows below are dropped.", zh="分数更低的行将被删除。"),
    )
    maximum: float | None = parameter(
        None,
        title=Text(en="Max", zh="最高"),
        help=Text(en="Maximum score; rows above are dropped.", zh="分数更高的行将被删除。"),
    )
    best_share: float | None = parameter(
        None,
        gt=0,
        le=1,
        title=Text(en="Top share", zh="保留最优比例"),
        help=Text(
            en="Keeps this share of the highest-scoring rows within the bounds. Ties go to earlier rows.",
            zh="在范围内的行中保留分数最高的这一比例；分数相同时保留靠前者。",
        ),
    )
    keep_unscored: bool = parameter(
        False,
        title=Text(en="Keep rows without a score", zh="保留无分数的行"),
        help=Text(
            en="Rows without a score, e.g. because a judge failed.", zh="分数为空的行，例如裁判失败时。"
        ),
    )

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.minimum is None and self.maximum is None and self.best_share is None:
            raise ValueError("set a minimum, a maximum or a top share")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"the minimum {self.minimum} is greater than the maximum {self.maximum}")
        return self


class FilterByScore(GlobalOperator):
    """Keeps rows by a score."""

    id = "filter_by_score"
    group = "filter"
    title = Text(en="Filter by score", zh="按分数筛选")
    help = Text(
        en="Keeps rows with a score within bounds, or the top share of rows.",
        zh="保留分数在范围内的行，或全部行中最优的一部分。",
    )
    Params = FilterByScoreParams
    params: FilterByScoreParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: ARG002 - the interface
        """Check that the score exists."""
        check_number(schema, self.params.score)

    def scan(self, batches: Iterator[Batch], folder: Path) -> None:
        """Store only the scores of the rows."""
        scores = [scores_of(batch.table, self.params.score) for batch in batches]
        np.save(folder / _SCORES, np.concatenate([np.zeros(0), *scores]))

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        """Decide which rows to keep, and return statistics of the scores."""
        scores = np.concatenate([np.zeros(0), *(np.load(scan / _SCORES) for scan in scans)])
        verdicts = self._verdicts(scores)
        np.save(folder / _VERDICTS, verdicts)
        told = scores[~np.isnan(scores)]
        if len(told) == 0:
            return {"rows": len(scores), "scored": 0}
        bounded = np.isfinite(scores)
        counts, edges = np.histogram(scores[bounded], bins=_BINS)
        kept = scores[(verdicts == 0) & bounded]
        return {
            "rows": len(scores),
            "scored": len(told),
            "lowest_kept": float(kept.min()) if len(kept) else None,
            "histogram": {"kind": "histogram", "edges": edges.tolist(), "counts": counts.tolist()},
        }

    def apply(self, batch: Batch, reduced: Path) -> Outcome:
        """Look the verdicts up."""
        verdicts = np.load(reduced / _VERDICTS, mmap_mode="r")[batch.start : batch.start + len(batch)]
        return dropping(
            batch.table, {reason: verdicts == code for code, reason in enumerate(_REASONS, start=1)}
        )

    def _verdicts(self, scores: np.ndarray) -> np.ndarray:
        verdicts = np.zeros(len(scores), dtype=np.uint8)
        is_told = ~np.isnan(scores)
        if not self.params.keep_unscored:
            verdicts[~is_told] = 1
        if self.params.minimum is not None:
            verdicts[is_told & (scores < self.params.minimum)] = 2
        if self.params.maximum is not None:
            verdicts[is_told & (scores > self.params.maximum)] = 3
        if self.params.best_share is not None:
            candidates = np.flatnonzero((verdicts == 0) & is_told)
            number = round(len(candidates) * self.params.best_share)
            order = np.argsort(-scores[candidates], kind="stable")
            verdicts[candidates[order[number:]]] = 4
        return verdicts
