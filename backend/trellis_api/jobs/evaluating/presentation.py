"""What clients read of the evaluations that a training asks for."""

from typing import Any

from sqlmodel import Session
from trellis_contracts.recipe import Text

from trellis_api.evaluations.orders import EvaluateWhileTraining
from trellis_api.jobs.evaluating import repository
from trellis_api.jobs.evaluating.models import DueState
from trellis_api.jobs.evaluating.schemas import CheckpointEvaluation, EarlyStopped, EvaluateRead
from trellis_api.jobs.models import Job

EARLY_STOPPED = "early_stopped"


def map_evaluations(session: Session, *, job: Job) -> dict[int, CheckpointEvaluation]:
    """Map the step of each checkpoint that was to be evaluated to the state of its evaluation."""
    if not job.evaluate:
        return {}
    rows = repository.list_due(session, job_id=job.id)
    ids = {row.evaluation_id for row in rows if row.evaluation_id}
    states = repository.map_evaluation_states(session, evaluation_ids=ids)
    return {
        row.step: CheckpointEvaluation(
            id=row.evaluation_id if row.evaluation_id in states else None,
            state=DueState(row.state),
            job_state=states.get(row.evaluation_id or ""),
            is_final=row.is_final,
            problem=row.problem,
        )
        for row in rows
    }


def present_order(job: Job, *, skipped: int) -> EvaluateRead | None:
    """Present the job's evaluation settings, the number of skipped checkpoints, and an early stop."""
    if not job.evaluate:
        return None
    asked: dict[str, Any] = dict(job.evaluate)
    stopped = asked.pop("stopped", None)
    order = EvaluateWhileTraining.model_validate(asked)
    ended = (
        EarlyStopped(**stopped, reason=explain(stopped)) if stopped and job.cause == EARLY_STOPPED else None
    )
    return EvaluateRead(**order.model_dump(), stopped=ended, skipped=skipped)


def explain(stopped: dict[str, Any]) -> Text:
    """Explain why a training was stopped early."""
    score, best, step = (
        f"{stopped['label']}/{stopped['metric']}",
        f"{stopped['best']:.4g}",
        stopped["best_step"],
    )
    return Text(
        en=f"Stopped early: {score} has not improved in {stopped['count']} evaluations; "
        f"best {best} at step {step}.",
        zh=f"已提前停止：{score} 连续 {stopped['count']} 次评测没有提升，最佳值为第 {step} 步的 {best}。",
    )
