"""Gathers what a card states: the model's row, the trainings behind it, and the scores of it."""

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlmodel import Session, col, or_, select

from trellis_api.cards.licences import find_licence
from trellis_api.cards.repositories import find_dataset_repository, find_repository
from trellis_api.cards.schemas import FORMAT, CardFacts, Figure, ScoreFacts, TrainingFacts
from trellis_api.core.redaction import redact_tree
from trellis_api.datasets.repository import find_dataset
from trellis_api.evaluations.measured import map_datasets_of_scores
from trellis_api.evaluations.models import EvaluationScore
from trellis_api.evaluations.schemas import MeasuredDataset
from trellis_api.jobs.checkpoints import metrics as checkpoint_metrics
from trellis_api.jobs.metrics import headline
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import find_checkpoint, find_job, list_attempts
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model
from trellis_api.models.schemas import Lineage, Training

_DIGITS = 6
#: Of a curve, which a table shows in one row.
_CURVE_POINTS, _CURVE_DIGITS = 12, 4
#: Losses of training and of validation, as engines name them; the first that a run reports is shown.
_LOSSES = (("train/loss", "loss", "actor/pg_loss"), ("val/loss", "eval_loss"))
#: More scores than a reader has use for.
_MAX_SCORES = 200


def gather(session: Session, *, model: Model, data_root: Path) -> CardFacts:
    """Collect the current facts about a model. Deleted things keep the names that lineages have of them."""
    lineage = Lineage.model_validate(model.lineage)
    trainings = [each for each in (lineage, *lineage.ancestors) if each.job_id is not None]
    return CardFacts(
        format=FORMAT,
        model=model.id,
        name=model.name,
        weights_sha256=model.sha256,
        weights_sha256_kind=model.sha256_kind,
        architecture=model.architecture,
        parameters=model.parameter_count,
        dtype=model.dtype,
        context_length=model.context_length,
        form=lineage.form,
        base=_find_base(model, trainings),
        base_repository=_find_base_repository(session, model, trainings),
        licence=_find_licence(session, model, trainings, data_root=data_root),
        trainings=[_describe(session, each) for each in trainings],
        scores=list(_list_scores(session, model, lineage)),
    )


def _find_base(model: Model, trainings: list[Training]) -> str | None:
    """Return the name of the model it was trained from; None for weights that came from elsewhere."""
    if trainings:
        return trainings[0].model_name
    return str(model.source["repo_id"]) if model.source.get("kind") == "hub" else None


def _find_base_repository(session: Session, model: Model, trainings: list[Training]) -> str | None:
    """Return the hub repository of the nearest base model.

    Hubs refuse the names that models have on this platform.
    """
    if not trainings:
        return find_repository(model)
    bases = (find_model(session, model_id=each.model_id or "") for each in trainings)
    return next((found for base in bases if base and (found := find_repository(base))), None)


def _find_licence(
    session: Session, model: Model, trainings: list[Training], *, data_root: Path
) -> str | None:
    """Return the license of the weights that training started from."""
    root_id = trainings[-1].model_id if trainings else model.id
    root = find_model(session, model_id=root_id or "")
    return find_licence(root, data_root=data_root) if root else None


def _describe(session: Session, training: Training) -> TrainingFacts:
    facts = TrainingFacts(
        job=training.job_id,
        name=training.job_name,
        recipe=training.recipe,
        step=training.step,
        base=training.model_name,
        dataset=training.dataset_id,
        dataset_name=training.dataset_name,
        dataset_version=training.dataset_version,
        dataset_split=training.dataset_split,
        dataset_sha256=training.dataset_sha256,
        environment=training.environment_name,
        environment_sha256=training.environment_sha256,
    )
    dataset = find_dataset(session, dataset_id=training.dataset_id or "")
    if dataset is not None:
        facts.dataset_licences = dataset.licences
        facts.dataset_repository = find_dataset_repository(dataset)
    job = find_job(session, job_id=training.job_id or "")
    if job is not None:
        _add_run(session, facts, job)
        _add_curves(session, facts, job)
    return facts


def _add_run(session: Session, facts: TrainingFacts, job: Job) -> None:
    """Add the facts that only the job itself has, as long as it exists."""
    facts.preset, facts.seed = job.preset, job.seed
    facts.parameters = redact_tree(dict(sorted(job.params.items())))
    found = headline.summarise(session, jobs=[job]).get(job.id)
    if found is not None:
        facts.figure = Figure(
            key=found.key,
            last=_round(found.last),
            last_step=found.last_step,
            best=_round(found.best),
            best_step=found.best_step,
        )
    checkpoint = find_checkpoint(session, job_id=job.id, step=facts.step or 0)
    if checkpoint is not None:
        values = checkpoint_metrics.read(session, job=job, checkpoints=[checkpoint])[checkpoint.step]
        rounded = {key: _round(value) for key, value in sorted(values.items())}
        facts.checkpoint_metrics = {key: value for key, value in rounded.items() if value is not None}
    for attempt in reversed(list_attempts(session, job_id=job.id)):
        if attempt.manifest is not None:
            facts.manifest_attempt = attempt.number
            facts.manifest_sha256 = _hash(attempt.manifest)
            break


def _add_curves(session: Session, facts: TrainingFacts, job: Job) -> None:
    """Add the way to the step: the headline metric, and the losses of training and validation."""
    reported = metric_query.find_series(session.connection(), job_id=job.id)
    losses = (next((key for key in keys if key in reported), None) for keys in _LOSSES)
    wanted = dict.fromkeys([facts.figure.key if facts.figure else None, *losses])
    curves = metric_query.read_curves(
        session,
        job=job,
        keys=[key for key in wanted if key is not None],
        max_points=_CURVE_POINTS,
        to_step=facts.step,
    )
    there = [curve for curve in curves if curve.points]
    facts.curves = {
        curve.key: {step: _round(value, digits=_CURVE_DIGITS) for step, value in curve.points}
        for curve in there
    }
    facts.has_whole_curves = bool(there) and not any(curve.is_downsampled for curve in there)


def _list_scores(session: Session, model: Model, lineage: Lineage) -> Iterator[ScoreFacts]:
    """Yield the scores of the model and of the checkpoint it was made from: these are the same weights."""
    of_model = col(EvaluationScore.target_model_id) == model.id
    of_checkpoint = (col(EvaluationScore.target_job_id) == lineage.job_id) & (
        col(EvaluationScore.target_step) == lineage.step
    )
    is_its = or_(of_model, of_checkpoint) if lineage.job_id else of_model
    query = select(EvaluationScore).where(is_its, col(EvaluationScore.group_kind).is_(None))
    order = (col(EvaluationScore.created_at), col(EvaluationScore.id))
    rows = session.exec(query.order_by(*order).limit(_MAX_SCORES)).all()
    on_datasets = [row.evaluation_id for row in rows if row.dataset_id is not None]
    datasets = map_datasets_of_scores(session, evaluation_ids=on_datasets)
    for row in rows:
        value = _round(row.value)
        if value is None:
            continue
        yield ScoreFacts(
            evaluation=row.evaluation_id,
            benchmark=row.benchmark,
            label=row.label,
            dataset=_name_dataset(datasets.get(row.evaluation_id, {}).get(row.label)),
            metric=row.metric,
            value=value,
            low=_round(row.low),
            high=_round(row.high),
            method=row.method,
            problems=row.n,
            of=model.id if row.target_model_id else f"{row.target_job_id}:{row.target_step}",
        )


def _name_dataset(dataset: MeasuredDataset | None) -> str | None:
    """Return the dataset's name with its version; the ID if the name is lost."""
    if dataset is None:
        return None
    name = dataset.name or dataset.id
    return f"{name} @ {dataset.version[:8]}" if dataset.version else name


def _round(value: float | None, *, digits: int = _DIGITS) -> float | None:
    """Round to the digits that a card shows; None for anything that isn't a finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def _hash(manifest: dict[str, Any]) -> str:
    """Hash the manifest as JSON with sorted keys, since databases don't keep their order."""
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
