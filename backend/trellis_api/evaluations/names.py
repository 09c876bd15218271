"""Evaluations with IDs in place of names."""

from typing import TypeVar

from sqlmodel import Session

from trellis_api.evaluations.schemas import EvaluationPlan, ModelTarget, Target
from trellis_api.names.resolve import MODELS, find_id
from trellis_api.rewards.names import with_order_ids

Plan = TypeVar("Plan", bound=EvaluationPlan)


def with_ids(session: Session, plan: Plan) -> Plan:
    """Return the plan with the IDs of its models, datasets and reward files."""
    targets = [_with_id(session, each, position) for position, each in enumerate(plan.targets)]
    benchmarks = with_order_ids(session, plan.benchmarks, field="benchmarks")
    return plan.model_copy(update={"targets": targets, "benchmarks": benchmarks})


def _with_id(session: Session, target: Target, position: int) -> Target:
    if not isinstance(target, ModelTarget):
        return target
    model = find_id(session, MODELS, target.model, field=f"targets.{position}.model")
    return target.model_copy(update={"model": model})
