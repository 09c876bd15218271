"""The samples on which several files of one benchmark do not agree, in the order of the first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from trellis_contracts.evaluation import Sample

from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.samples.changes import Changed, find_changes
from trellis_evaluation.samples.format import NUMBERS
from trellis_evaluation.samples.store import SampleStore

#: What became of the others against the first is, from the first's side, the opposite.
_OPPOSITE: dict[Changed, Changed] = {"any": "any", "better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Disagreement:
    """One generation of a problem, as each file has it."""

    baseline: Sample
    #: In the order of the files; None where a file lacks the problem.
    others: list[Sample | None]


@dataclass(frozen=True)
class DisagreementPage:
    """Some of them, and how many there are."""

    rows: list[Disagreement]
    next_cursor: str | None
    total: int


def list_disagreements(
    baseline: SampleStore,
    others: Sequence[SampleStore],
    *,
    changed: Changed = "any",
    among: Sequence[int] | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> DisagreementPage:
    """List samples of the baseline that any of the others (or those ``among`` them) answered differently.

    ``changed``: better or worse than the baseline, or any difference in score or verdict.
    """
    judged = others if among is None else [others[index] for index in among]
    differs = np.zeros(len(baseline), dtype=bool)
    for other in judged:
        differs |= find_changes(baseline, other).mask(_OPPOSITE[changed])
    ids = baseline.ids[differs]
    start = int(np.searchsorted(ids, _read_cursor(cursor), side="right"))
    chosen = [int(each) for each in ids[start : start + limit]]
    rows = []
    for each in chosen:
        sample = baseline.get(each // NUMBERS, each % NUMBERS)
        rows.append(Disagreement(sample, [other.find(sample.key, sample.number) for other in others]))
    more = str(chosen[-1]) if start + limit < len(ids) else None
    return DisagreementPage(rows, more, len(ids))


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return -1
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise EvaluationProblem("cursor_invalid", "The cursor is not one of these samples' pages.")
    return int(cursor)
