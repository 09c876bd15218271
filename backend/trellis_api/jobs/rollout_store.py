"""Keeps the sampled responses of each step."""

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, insert
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select
from trellis_contracts.events import Rollout, RolloutsEvent

from trellis_api.core.texts import shorten, storable
from trellis_api.jobs import trajectory_store
from trellis_api.jobs.models import RolloutSample

MAX_TEXT_CHARACTERS = 65_536


def write(session: Session, *, job_id: str, attempt: int, event: RolloutsEvent) -> None:
    """Keep the responses of one event; those of an earlier attempt at the same step are replaced."""
    session.exec(
        delete(RolloutSample).where(
            col(RolloutSample.job_id) == job_id,
            col(RolloutSample.split) == event.split,
            col(RolloutSample.step) == event.step,
            col(RolloutSample.attempt) < attempt,
        )
    )
    rows = [
        {"job_id": job_id, "attempt": attempt, "step": event.step, "split": event.split, **_as_row(rollout)}
        for rollout in event.rollouts
    ]
    if rows:
        session.connection().execute(insert(RolloutSample), rows)


def read(
    session: Session,
    *,
    job_id: str,
    step: int,
    split: str,
    stop_reason: str | None = None,
    has_trajectories: bool = False,
) -> Sequence[RolloutSample]:
    """The responses of one step, those of one prompt together, in the order in which they came.

    Trajectories are long, so they are read only where they are asked for.
    """
    query = select(RolloutSample).where(
        RolloutSample.job_id == job_id, RolloutSample.split == split, RolloutSample.step == step
    )
    if stop_reason is not None:
        query = query.where(RolloutSample.stop_reason == stop_reason)
    if not has_trajectories:
        query = query.options(defer(RolloutSample.trajectory))  # type: ignore[arg-type]
    samples = session.exec(query.order_by(col(RolloutSample.id))).all()
    order = {group: rank for rank, group in enumerate(dict.fromkeys(sample.group for sample in samples))}
    return sorted(samples, key=lambda sample: order[sample.group])


def find(session: Session, *, job_id: str, rollout_id: int) -> RolloutSample | None:
    """One response, if it is the job's."""
    sample = session.get(RolloutSample, rollout_id)
    return sample if sample is not None and sample.job_id == job_id else None


def count_stop_reasons(session: Session, *, job_id: str, step: int, split: str) -> dict[str, int]:
    """How many of a step's episodes ended why, the most frequent reason first."""
    statement = (
        select(RolloutSample.stop_reason, func.count())
        .where(RolloutSample.job_id == job_id, RolloutSample.split == split, RolloutSample.step == step)
        .where(col(RolloutSample.stop_reason).is_not(None))
        .group_by(col(RolloutSample.stop_reason))
    )
    counts = [(str(reason), count) for reason, count in session.exec(statement)]
    return dict(sorted(counts, key=lambda each: (-each[1], each[0])))


def find_newest_step(session: Session, *, job_id: str, split: str) -> int | None:
    """The newest step that has responses."""
    return session.exec(
        select(func.max(RolloutSample.step)).where(
            RolloutSample.job_id == job_id, RolloutSample.split == split
        )
    ).one()


def list_steps(
    session: Session, *, job_id: str, split: str | None
) -> list[tuple[int, str, int, float | None]]:
    """Steps with their split, number of responses and mean score, in order."""
    statement = (
        select(
            RolloutSample.step,
            RolloutSample.split,
            func.count(),
            func.avg(RolloutSample.score),
        )
        .where(RolloutSample.job_id == job_id)
        .group_by(col(RolloutSample.step), col(RolloutSample.split))
        .order_by(col(RolloutSample.step), col(RolloutSample.split))
    )
    if split is not None:
        statement = statement.where(RolloutSample.split == split)
    return [tuple(row) for row in session.exec(statement)]


def truncate(session: Session, *, job_id: str, last_step: int) -> None:
    """Forget the responses behind ``last_step``."""
    session.exec(
        delete(RolloutSample).where(col(RolloutSample.job_id) == job_id, col(RolloutSample.step) > last_step)
    )


def _as_row(rollout: Rollout) -> dict[str, Any]:
    return {
        "group": storable(rollout.group),
        "prompt": _text(rollout.prompt),
        "response": _text(rollout.response),
        "ground_truth": None if rollout.ground_truth is None else _text(rollout.ground_truth),
        "score": finite(rollout.score),
        "reward_parts": {storable(name): finite(part) for name, part in rollout.reward_parts.items()},
        "response_tokens": rollout.response_tokens,
        "advantage": finite(rollout.advantage),
        "is_truncated": rollout.is_truncated,
        **trajectory_store.as_columns(rollout.trajectory),
    }


def _text(text: str) -> str:
    return shorten(storable(text), limit=MAX_TEXT_CHARACTERS)


def finite(value: float | None) -> float | None:
    """The number, or None where it is none: JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None
