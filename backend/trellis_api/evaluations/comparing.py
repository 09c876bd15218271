"""Two evaluations side by side, problem by problem.

What was compared once is kept beside the samples: neither side ever changes, and a long list of
problems takes a while to pair.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.evaluation import BenchmarkResult
from trellis_evaluation.problem import EvaluationProblem

from trellis_api.core.settings import Settings
from trellis_api.evaluations import presentation, service
from trellis_api.evaluations.errors import EvaluationUnfinished, SamplesDamaged
from trellis_api.evaluations.folder import evaluation_folder, samples_path
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import (
    ComparedBenchmark,
    ComparisonRead,
    EvaluationRead,
    MeasuredDataset,
)

if TYPE_CHECKING:
    from trellis_evaluation.comparison import Comparison

log = logging.getLogger(__name__)
#: What was compared before data type and engine counted among the settings lies in another folder.
_FOLDER = "comparisons-2"


@dataclass(frozen=True)
class Pair:
    """Two finished evaluations, as they stand in the database."""

    a: Evaluation
    b: Evaluation
    a_read: EvaluationRead
    b_read: EvaluationRead


def find_pair(session: Session, *, a: str, b: str) -> Pair:
    """Both; ``EvaluationUnfinished`` where one has no results yet."""
    rows = [service.get_evaluation(session, evaluation_id=each) for each in (a, b)]
    for row in rows:
        if row.results is None:
            raise EvaluationUnfinished(f"'{row.name}' has no results yet.", {"evaluation": row.id})
    read = presentation.present_all(session, evaluations=rows)
    return Pair(rows[0], rows[1], read[0], read[-1])


def compare(settings: Settings, pair: Pair) -> ComparisonRead:
    """Every benchmark that both have; no transaction is open meanwhile."""
    first, second = _results(pair.a), _results(pair.b)
    both = [label for label in first if label in second]
    return ComparisonRead(
        a=pair.a_read,
        b=pair.b_read,
        benchmarks=[
            present(compare_label(settings, pair.a, pair.b, label), dataset=pair.b_read.datasets.get(label))
            for label in both
        ],
        only_a=[label for label in first if label not in second],
        only_b=[label for label in second if label not in first],
    )


def compare_label(settings: Settings, a: Evaluation, b: Evaluation, label: str) -> "Comparison":
    """One benchmark of both, from what is kept or anew."""
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
    """Whole or not at all. A disk that takes nothing costs the next reader the time, nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, prefix=".", suffix=".part", delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError as error:
        log.warning("%s cannot be kept: %s", path, error)
