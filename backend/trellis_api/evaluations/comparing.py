"""Two to six evaluations side by side, problem by problem, each against the first.

What was compared once is kept beside the samples: neither side ever changes, and a long list of
problems takes a while to pair.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.evaluation import BenchmarkResult
from trellis_evaluation.problem import EvaluationProblem

from trellis_api.core.ids import is_id, split_ids
from trellis_api.core.settings import Settings
from trellis_api.evaluations import presentation, repository
from trellis_api.evaluations.errors import (
    EvaluationNotFound,
    EvaluationUnfinished,
    InvalidEvaluationComparison,
    NoSharedBenchmark,
    SamplesDamaged,
)
from trellis_api.evaluations.folder import evaluation_folder, samples_path
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import (
    ComparedBenchmark,
    ComparedTable,
    ComparedWithBaseline,
    ComparisonRead,
    EvaluationRead,
    MeasuredDataset,
    UnsharedBenchmark,
)

if TYPE_CHECKING:
    from trellis_evaluation.comparison import Comparison

log = logging.getLogger(__name__)
#: What was compared before data type and engine counted among the settings lies in another folder.
_FOLDER = "comparisons-2"
LEAST_COMPARED, MOST_COMPARED = 2, 6


@dataclass(frozen=True)
class Chosen:
    """Finished evaluations, as they stand in the database; the first is the baseline."""

    rows: list[Evaluation]
    reads: list[EvaluationRead]


def read_ids(ids: Sequence[str]) -> list[str]:
    """Read ids without duplicates, in order; ``InvalidEvaluationComparison`` for a wrong count or id."""
    found = split_ids(ids)
    wrong = next((name for name in found if not is_id(name, prefix="ev")), None)
    if wrong is not None:
        raise InvalidEvaluationComparison(f"'{wrong[:80]}' is not the id of an evaluation.")
    if not LEAST_COMPARED <= len(found) <= MOST_COMPARED:
        raise InvalidEvaluationComparison(
            f"Choose {LEAST_COMPARED} to {MOST_COMPARED} different evaluations; these are {len(found)}.",
            {"min": LEAST_COMPARED, "max": MOST_COMPARED, "given": len(found)},
        )
    return found


def find_chosen(session: Session, *, ids: Sequence[str]) -> Chosen:
    """Find all of them; raises if some do not exist or one has no results yet."""
    found = {row.id: row for row in repository.list_by_ids(session, evaluation_ids=ids)}
    if missing := [each for each in ids if each not in found]:
        raise EvaluationNotFound(*missing)
    rows = [found[each] for each in ids]
    for row in rows:
        if row.results is None:
            raise EvaluationUnfinished(f"'{row.name}' has no results yet.", {"evaluation": row.id})
    return Chosen(rows, presentation.present_all(session, evaluations=rows))


def compare(settings: Settings, chosen: Chosen) -> ComparisonRead:
    """Compare every benchmark that the baseline shares with another; no transaction is open meanwhile."""
    results = {row.id: _results(row) for row in chosen.rows}
    baseline = chosen.rows[0]
    labels = dict.fromkeys(label for found in results.values() for label in found)
    owners = {label: [each for each, found in results.items() if label in found] for label in labels}
    shared = [label for label in results[baseline.id] if len(owners[label]) > 1]
    if not shared:
        raise NoSharedBenchmark(
            f"'{baseline.name}' shares no benchmark with the others.",
            {"benchmarks": {each: list(found) for each, found in results.items()}},
        )
    return ComparisonRead(
        baseline=baseline.id,
        evaluations=chosen.reads,
        benchmarks=[_compare_all(settings, chosen, results, label) for label in shared],
        unshared=[
            UnsharedBenchmark(label=label, evaluations=owners[label])
            for label in labels
            if label not in shared
        ],
    )


def _compare_all(
    settings: Settings, chosen: Chosen, results: Mapping[str, Mapping[str, BenchmarkResult]], label: str
) -> ComparedTable:
    """Compare one benchmark: each that has it with the baseline, p-values corrected for their number.

    ``results`` are those of each evaluation, by its id and the benchmark's label.
    """
    baseline = chosen.rows[0]
    result = results[baseline.id][label]
    pairs = list(zip(chosen.rows, chosen.reads, strict=True))[1:]
    having = [(row, read) for row, read in pairs if label in results[row.id]]
    found = [
        present(compare_label(settings, baseline, row, label), dataset=read.datasets.get(label))
        for row, read in having
    ]
    adjusted = adjust([each.p_value for each in found])
    return ComparedTable(
        label=label,
        benchmark=result.benchmark,
        dataset=chosen.reads[0].datasets.get(label),
        metric=result.headline,
        baseline=next(score for score in result.scores if score.metric == result.headline),
        others=[
            ComparedWithBaseline(evaluation_id=row.id, comparison=each, p_adjusted=p_adjusted)
            for (row, _), each, p_adjusted in zip(having, found, adjusted, strict=True)
        ],
        missing=[row.id for row, _ in pairs if label not in results[row.id]],
    )


def adjust(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values after Holm's correction for the number of tests; None if nothing was tested."""
    # SciPy takes a second to load, which no other request needs.
    from trellis_evaluation.statistics.multiple import holm

    adjusted = iter(holm([each for each in p_values if each is not None]))
    return [None if each is None else next(adjusted) for each in p_values]


def compare_label(settings: Settings, a: Evaluation, b: Evaluation, label: str) -> "Comparison":
    """Compare one benchmark of both, from the saved comparison or anew."""
    # SciPy takes a second to load, which no other request needs.
    from trellis_evaluation.comparison import Comparison, Side
    from trellis_evaluation.comparison import compare as compare_sides

    kept = evaluation_folder(settings, b.id) / _FOLDER / a.id / f"{label}.json"
    try:
        return Comparison.model_validate_json(kept.read_bytes())
    except FileNotFoundError:
        pass
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be used and is made anew: %s", kept, error)
    sides = [
        Side.of(_results(row)[label], samples_path(settings, row.id, label), row.manifest or {})
        for row in (a, b)
    ]
    try:
        found = compare_sides(*sides)
    except EvaluationProblem as problem:
        raise SamplesDamaged(str(problem)) from problem
    _keep(kept, found.model_dump_json())
    return found


def _results(row: Evaluation) -> dict[str, BenchmarkResult]:
    found = (BenchmarkResult.model_validate(result) for result in row.results or [])
    return {result.label: result for result in found}


def present(found: "Comparison", *, dataset: MeasuredDataset | None) -> ComparedBenchmark:
    """Return a comparison as clients read it."""
    told: dict[str, Any] = found.model_dump(exclude={"settings_differ"})
    return ComparedBenchmark(**told, dataset=dataset, differences=found.settings_differ)


def _keep(path: Path, text: str) -> None:
    """Save the file atomically. A disk that takes nothing costs the next reader the time, nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, prefix=".", suffix=".part", delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError as error:
        log.warning("%s cannot be kept: %s", path, error)
