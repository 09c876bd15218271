"""Queries on checkpoints that are to be measured."""

from collections.abc import Iterable, Sequence

from sqlalchemy import and_, delete, func, or_, update
from sqlmodel import Session, col, select
from trellis_contracts.states import ACTIVE, FINISHED, JobState

from trellis_api.evaluations.models import CHECKPOINT, PERSON, TRAINING, Evaluation
from trellis_api.jobs.evaluating.models import OPEN, DueEvaluation, DueState
from trellis_api.jobs.models import Job


def find_due(session: Session, *, job_id: str, step: int) -> DueEvaluation | None:
    """Return the current row of a checkpoint."""
    return session.get(DueEvaluation, (job_id, step), populate_existing=True)


def list_due(session: Session, *, job_id: str) -> Sequence[DueEvaluation]:
    """List all checkpoints of a job that were to be evaluated, by step."""
    statement = select(DueEvaluation).where(DueEvaluation.job_id == job_id)
    return session.exec(statement.order_by(col(DueEvaluation.step))).all()


def find_last_before(session: Session, *, job_id: str, step: int) -> DueEvaluation | None:
    """Return the last checkpoint before a step that has or had an evaluation due."""
    statement = select(DueEvaluation).where(DueEvaluation.job_id == job_id, col(DueEvaluation.step) < step)
    return session.exec(statement.order_by(col(DueEvaluation.step).desc()).limit(1)).first()


def count_open(session: Session, *, job_id: str) -> int:
    """Count the checkpoints of a job whose evaluation waits or runs."""
    statement = select(func.count()).select_from(DueEvaluation)
    is_open = col(DueEvaluation.state).in_(OPEN)
    return session.exec(statement.where(DueEvaluation.job_id == job_id, is_open)).one()


def count_skipped(session: Session, *, job_ids: Iterable[str]) -> dict[str, int]:
    """Count by job the checkpoints skipped for lack of room; jobs without any are left out."""
    wanted = list(job_ids)
    if not wanted:
        return {}
    statement = select(DueEvaluation.job_id, func.count()).where(
        col(DueEvaluation.job_id).in_(wanted), DueEvaluation.state == DueState.SKIPPED.value
    )
    return dict(session.exec(statement.group_by(col(DueEvaluation.job_id))).all())


def list_waiting(session: Session, *, limit: int) -> Sequence[tuple[str, int]]:
    """List job and step of checkpoints that have no evaluation yet, oldest first."""
    statement = select(DueEvaluation.job_id, DueEvaluation.step)
    is_waiting = DueEvaluation.state == DueState.WAITING.value
    return session.exec(
        statement.where(is_waiting)
        .order_by(col(DueEvaluation.saved_at), col(DueEvaluation.step))
        .limit(limit)
    ).all()


def list_over(session: Session, *, limit: int) -> Sequence[tuple[str, int]]:
    """List job and step of those whose evaluation ended or was deleted and wasn't processed since."""
    due, own = DueEvaluation, Job
    is_measured = and_(
        col(Evaluation.recorded_at).is_not(None),
        or_(col(due.closed_at).is_(None), col(Evaluation.recorded_at) > col(due.closed_at)),
    )
    has_failed = and_(
        col(due.state) == DueState.QUEUED.value,
        col(Evaluation.recorded_at).is_(None),
        col(Evaluation.displaced_at).is_(None),
        col(own.state).in_(FINISHED),
    )
    is_deleted = and_(col(due.state) == DueState.QUEUED.value, col(Evaluation.id).is_(None))
    statement = (
        select(due.job_id, due.step)
        .join(Evaluation, col(Evaluation.id) == col(due.evaluation_id), isouter=True)
        .join(own, col(own.id) == col(Evaluation.job_id), isouter=True)
        .where(col(due.evaluation_id).is_not(None), or_(is_measured, has_failed, is_deleted))
    )
    return session.exec(statement.order_by(col(due.saved_at), col(due.step)).limit(limit)).all()


def list_evaluating_steps(session: Session, *, job_id: str) -> set[int]:
    """Return the steps whose checkpoints are being evaluated, or wait for it: their files are needed."""
    due = select(DueEvaluation.step).where(DueEvaluation.job_id == job_id, col(DueEvaluation.state).in_(OPEN))
    return {*session.exec(due), *_list_active(session, job_id=job_id, triggers=(PERSON, TRAINING))}


def list_asked_steps(session: Session, *, job_id: str) -> set[int]:
    """List steps like ``list_evaluating_steps``, but of evaluations that a user requested."""
    return set(_list_active(session, job_id=job_id, triggers=(PERSON,)))


def list_unfinished_jobs(session: Session, *, job_id: str, after_step: int) -> Sequence[str]:
    """List the jobs of the evaluations that a training requested of checkpoints after a step."""
    statement = (
        select(Job.id)
        .join(Evaluation, col(Evaluation.job_id) == col(Job.id))
        .join(DueEvaluation, col(DueEvaluation.evaluation_id) == col(Evaluation.id))
        .where(
            DueEvaluation.job_id == job_id,
            col(DueEvaluation.step) > after_step,
            or_(col(Job.state).in_(ACTIVE), col(Evaluation.displaced_at).is_not(None)),
        )
    )
    return session.exec(statement.order_by(col(Job.id))).all()


def forget_displacement(session: Session, *, job_id: str) -> None:
    """Let an evaluation that has made room for a training not go on."""
    session.exec(update(Evaluation).where(col(Evaluation.job_id) == job_id).values(displaced_at=None))


def delete_behind(session: Session, *, job_id: str, step: int) -> None:
    """Forget the checkpoints behind a step: the run will save others there."""
    session.exec(
        delete(DueEvaluation).where(col(DueEvaluation.job_id) == job_id, col(DueEvaluation.step) > step)
    )


def map_evaluation_states(session: Session, *, evaluation_ids: Iterable[str]) -> dict[str, JobState]:
    """Return the states of those evaluations that exist, by ID."""
    statement = select(Evaluation.id, Job.state).join(Job, col(Job.id) == col(Evaluation.job_id))
    rows = session.exec(statement.where(col(Evaluation.id).in_(list(evaluation_ids))))
    return {evaluation_id: JobState(state) for evaluation_id, state in rows}


def _list_active(session: Session, *, job_id: str, triggers: tuple[str, ...]) -> Sequence[int]:
    statement = (
        select(Evaluation.target_step)
        .join(Job, col(Job.id) == col(Evaluation.job_id))
        .where(
            Evaluation.target_kind == CHECKPOINT,
            Evaluation.target_job_id == job_id,
            col(Evaluation.trigger).in_(triggers),
            or_(col(Job.state).in_(ACTIVE), col(Evaluation.displaced_at).is_not(None)),
        )
    )
    return [step for step in session.exec(statement) if step is not None]
