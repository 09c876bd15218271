"""Evaluations of the jobs' checkpoints and models beside those of a baseline, problem by problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, or_, select
from trellis_contracts.evaluation import BenchmarkResult

from trellis_api.core.settings import Settings
from trellis_api.evaluations import comparing
from trellis_api.evaluations.measured import map_measured_datasets
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import MeasuredDataset
from trellis_api.job_comparison.schemas import (
    ComparedEvaluations,
    EvaluatedPair,
    EvaluationReference,
    RunEvaluations,
)
from trellis_api.models.models import Model


@dataclass(frozen=True)
class Evaluated:
    """The newest evaluation of a job on one benchmark."""

    row: Evaluation
    step: int | None
    #: Of the platform that it was measured on.
    dataset: MeasuredDataset | None

    @property
    def reference(self) -> EvaluationReference:
        """As clients read it."""
        return EvaluationReference(id=self.row.id, name=self.row.name, step=self.step)


#: By job and label of the benchmark.
Found = dict[str, dict[str, Evaluated]]


def find_evaluations(session: Session, *, job_ids: Sequence[str]) -> Found:
    """Find finished evaluations of checkpoints and exported models: per benchmark the latest step."""
    models = {
        model.id: model
        for model in session.exec(select(Model).where(col(Model.source_job_id).in_(job_ids)))
        if model.source_job_id is not None
    }
    statement = (
        select(Evaluation)
        .where(
            or_(
                col(Evaluation.target_job_id).in_(job_ids), col(Evaluation.target_model_id).in_(list(models))
            ),
            col(Evaluation.recorded_at).is_not(None),
        )
        .order_by(col(Evaluation.created_at))
    )
    rows = session.exec(statement).all()
    datasets = map_measured_datasets(session, evaluations=rows)
    found: Found = {job_id: {} for job_id in job_ids}
    for row in rows:
        if row.results is None:
            continue
        model = models.get(row.target_model_id or "")
        job_id = row.target_job_id or (model.source_job_id if model else None)
        step = row.target_step if model is None else model.source_step
        if job_id not in found:
            continue
        for result in row.results:
            label = BenchmarkResult.model_validate(result).label
            before = found[job_id].get(label)
            if before is None or (before.step or 0) <= (step or 0):
                found[job_id][label] = Evaluated(row, step, datasets[row.id].get(label))
    return found


def compare(
    settings: Settings, *, found: Found, job_ids: Sequence[str], baseline: str
) -> ComparedEvaluations:
    """Compare every job with the baseline on shared benchmarks; no transaction is open meanwhile.

    The p-values of a benchmark are corrected for the number of jobs: of many, some differ by chance.
    """
    ours = found[baseline]
    others = [job_id for job_id in job_ids if job_id != baseline]
    pairs: dict[str, list[EvaluatedPair]] = {job_id: [] for job_id in others}
    for label in sorted(ours):
        having = [job_id for job_id in others if label in found[job_id]]
        own = [_pair(settings, label, ours[label], found[job_id][label]) for job_id in having]
        adjusted = comparing.adjust([pair.comparison.p_value for pair in own])
        for job_id, pair, p_adjusted in zip(having, own, adjusted, strict=True):
            pairs[job_id].append(pair.model_copy(update={"p_adjusted": p_adjusted}))
    return ComparedEvaluations(
        baseline=baseline,
        evaluated=[job_id for job_id in job_ids if found[job_id]],
        runs=[RunEvaluations(job_id=job_id, benchmarks=own) for job_id, own in pairs.items()],
    )


def _pair(settings: Settings, label: str, a: Evaluated, b: Evaluated) -> EvaluatedPair:
    comparison = comparing.compare_label(settings, a.row, b.row, label)
    return EvaluatedPair(
        baseline=a.reference,
        evaluation=b.reference,
        comparison=comparing.present(comparison, dataset=b.dataset),
        p_adjusted=None,
    )
