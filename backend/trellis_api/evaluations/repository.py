"""Queries on evaluations and their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import String, cast, delete
from sqlmodel import Session, col, select, tuple_
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.ids import is_id
from trellis_api.evaluations.models import Evaluation, EvaluationLeftover, EvaluationScore
from trellis_api.jobs.models import EVALUATE, Job


@dataclass(frozen=True)
class EvaluationFilter:
    """What evaluations to list; every condition that is given must hold."""

    model_id: str | None = None
    job_id: str | None = None
    benchmark: str | None = None
    states: tuple[JobState, ...] = ()


def find_evaluation(session: Session, *, evaluation_id: str) -> Evaluation | None:
    """Return the evaluation with this ID; None for anything that is not an ID."""
    return session.get(Evaluation, evaluation_id) if is_id(evaluation_id, prefix="ev") else None


def find_by_job(session: Session, *, job_id: str) -> Evaluation | None:
    """Return the evaluation that a job carries out."""
    return session.exec(select(Evaluation).where(Evaluation.job_id == job_id)).first()


def map_by_job(session: Session, *, job_ids: Iterable[str]) -> dict[str, Evaluation]:
    """Return the evaluations that some jobs carry out, by the jobs' IDs."""
    found = session.exec(select(Evaluation).where(col(Evaluation.job_id).in_(list(job_ids))))
    return {row.job_id: row for row in found}


def list_by_ids(session: Session, *, evaluation_ids: Iterable[str]) -> Sequence[Evaluation]:
    """List those evaluations that exist, in no order."""
    return session.exec(select(Evaluation).where(col(Evaluation.id).in_(list(evaluation_ids)))).all()


def list_evaluations(
    session: Session, *, wanted: EvaluationFilter, before: tuple[datetime, str] | None, limit: int
) -> Sequence[Evaluation]:
    """List evaluations, newest first, at most ``limit``, after the position of the last row seen."""
    newest_first = (col(Evaluation.created_at).desc(), col(Evaluation.id).desc())
    statement = select(Evaluation).order_by(*newest_first).limit(limit)
    if wanted.model_id is not None:
        statement = statement.where(Evaluation.target_model_id == wanted.model_id)
    if wanted.job_id is not None:
        statement = statement.where(Evaluation.target_job_id == wanted.job_id)
    if wanted.benchmark is not None:
        # As JSON text the names stand in quotes; a name has none itself.
        named = cast(col(Evaluation.benchmark_names), String).contains(f'"{wanted.benchmark}"')
        statement = statement.where(named)
    if wanted.states:
        jobs = select(Job.id).where(Job.kind == EVALUATE, col(Job.state).in_(wanted.states))
        statement = statement.where(col(Evaluation.job_id).in_(jobs))
    if before is not None:
        statement = statement.where(tuple_(col(Evaluation.created_at), col(Evaluation.id)) < before)
    return session.exec(statement).all()


def map_jobs(session: Session, *, evaluations: Iterable[Evaluation]) -> dict[str, Job]:
    """Return the jobs of some evaluations, by the jobs' IDs."""
    wanted = col(Job.id).in_([row.job_id for row in evaluations])
    return {job.id: job for job in session.exec(select(Job).where(wanted))}


def list_active(session: Session) -> Sequence[tuple[Evaluation, Job]]:
    """List the evaluations that wait or run, with their jobs; there are never many."""
    statement = select(Evaluation, Job).join(Job, col(Job.id) == col(Evaluation.job_id))
    return session.exec(statement.where(col(Job.state).in_(ACTIVE)).order_by(Evaluation.name)).all()


def add_evaluation(session: Session, row: Evaluation) -> None:
    """Insert an evaluation; the job's row must exist."""
    session.add(row)
    session.flush()


def replace_scores(session: Session, *, evaluation_id: str, scores: Iterable[EvaluationScore]) -> None:
    """Write an evaluation's scores in place of what there was."""
    session.exec(delete(EvaluationScore).where(col(EvaluationScore.evaluation_id) == evaluation_id))
    session.add_all(scores)
    session.flush()


def map_evaluation_names(session: Session, *, evaluation_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those evaluations that exist, by ID."""
    wanted = col(Evaluation.id).in_(list(evaluation_ids))
    return dict(session.exec(select(Evaluation.id, Evaluation.name).where(wanted)).all())


def list_reading_version(
    session: Session, *, dataset_id: str, version_id: str
) -> list[tuple[Evaluation, Job]]:
    """List the evaluations that read, or have read, a version of a dataset, newest first."""
    names = cast(col(Evaluation.request), String).contains(version_id)
    statement = select(Evaluation, Job).join(Job, col(Job.id) == col(Evaluation.job_id)).where(names)
    found = session.exec(statement.order_by(col(Evaluation.created_at).desc())).all()
    wanted = {"dataset": dataset_id, "version": version_id}
    return [
        (row, job)
        for row, job in found
        if any(wanted.items() <= order.items() for order in row.request["benchmarks"])
    ]


def add_leftover(session: Session, *, leftover_id: str) -> None:
    """Let the files of a deleted evaluation or report be removed, however long that takes to happen."""
    session.merge(EvaluationLeftover(id=leftover_id))
    session.flush()


def list_leftovers(session: Session) -> Sequence[str]:
    """List the ids of deleted evaluations and reports whose files are still there, oldest first."""
    return session.exec(select(EvaluationLeftover.id).order_by(col(EvaluationLeftover.requested_at))).all()


def delete_leftover(session: Session, *, leftover_id: str) -> None:
    """Note that the files are gone."""
    session.exec(delete(EvaluationLeftover).where(col(EvaluationLeftover.id) == leftover_id))


def list_measured(session: Session, *, benchmark: str, limit: int) -> Sequence[Evaluation]:
    """List the finished evaluations with a benchmark, newest first."""
    named = cast(col(Evaluation.benchmark_names), String).contains(f'"{benchmark}"')
    is_done = col(Evaluation.recorded_at).is_not(None)
    statement = select(Evaluation).where(named, is_done).order_by(col(Evaluation.recorded_at).desc())
    return session.exec(statement.limit(limit)).all()
