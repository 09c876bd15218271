"""Keeps the sampled responses of each step."""

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, delete, func, insert, literal, or_
from sqlalchemy import select as sa_select
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select
from trellis_contracts.events import Rollout, RolloutsEvent

from trellis_api.core.texts import shorten, storable
from trellis_api.jobs.models import RolloutSample
from trellis_api.jobs.rollouts import groups as rollout_groups
from trellis_api.jobs.rollouts import token_store, trajectory_store
from trellis_api.jobs.rollouts.pages import Mark

MAX_TEXT_CHARACTERS = 65_536
#: Ids of one query: SQLite takes 32,766 variables.
_MAX_IDS = 10_000


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
        token_store.write(session, job_id=job_id, event=event)
    rollout_groups.summarise(session, job_id=job_id, event=event)


def list_marks(session: Session, *, job_id: str, step: int, split: str) -> list[Mark]:
    """List the short columns of each response of a step, in the order in which the responses arrived."""
    columns = sa_select(
        *(getattr(RolloutSample, name) for name in Mark._fields),
    ).where(_is_of(job_id=job_id, step=step, split=split))
    rows = session.connection().execute(columns.order_by(col(RolloutSample.id)))
    return [Mark(*row) for row in rows]


def find_texts(session: Session, *, job_id: str, step: int, split: str, text: str) -> frozenset[int]:
    """Find the ids of a step's responses that contain a text, or whose prompt does; case is ignored."""
    is_found = or_(
        col(RolloutSample.response).icontains(text, autoescape=True),
        col(RolloutSample.prompt).icontains(text, autoescape=True),
    )
    statement = sa_select(col(RolloutSample.id)).where(
        _is_of(job_id=job_id, step=step, split=split), is_found
    )
    found = session.connection().execute(statement).scalars()
    return frozenset(number for number in found if number is not None)


def _is_of(*, job_id: str, step: int, split: str) -> Any:
    return and_(
        col(RolloutSample.job_id) == job_id,
        col(RolloutSample.split) == split,
        col(RolloutSample.step) == step,
    )


def read(session: Session, *, ids: Sequence[int], has_trajectories: bool = False) -> Sequence[RolloutSample]:
    """Read these responses, in this order; trajectories are long, and read only on request."""
    return [
        sample
        for start in range(0, len(ids), _MAX_IDS)
        for sample in _read_some(session, ids[start : start + _MAX_IDS], has_trajectories=has_trajectories)
    ]


def _read_some(session: Session, ids: Sequence[int], *, has_trajectories: bool) -> list[RolloutSample]:
    query = select(RolloutSample).where(col(RolloutSample.id).in_(ids))
    if not has_trajectories:
        query = query.options(defer(RolloutSample.trajectory))  # type: ignore[arg-type]
    order = {number: rank for rank, number in enumerate(ids)}
    return sorted(session.exec(query), key=lambda sample: order[sample.id or 0])


def find(session: Session, *, job_id: str, rollout_id: int) -> RolloutSample | None:
    """Find one response if it belongs to the job."""
    sample = session.get(RolloutSample, rollout_id)
    return sample if sample is not None and sample.job_id == job_id else None


def find_newest_step(session: Session, *, job_id: str, split: str, at: int | None = None) -> int | None:
    """Return the newest step that has responses; with ``at`` that step, if it has any."""
    statement = select(func.max(RolloutSample.step)).where(
        RolloutSample.job_id == job_id, RolloutSample.split == split
    )
    if at is not None:
        statement = statement.where(RolloutSample.step == at)
    return session.exec(statement).one()


def list_newest_steps(session: Session, *, job_id: str, split: str, limit: int) -> list[int]:
    """List the newest steps that have responses, newest first.

    It takes one index lookup for each. For ``DISTINCT``, PostgreSQL reads every response of the job; SQLite
    skips from step to step by itself.
    """
    is_of = (col(RolloutSample.job_id) == job_id, col(RolloutSample.split) == split)
    newest = sa_select(func.max(col(RolloutSample.step)).label("step"), literal(1).label("place")).where(
        *is_of
    )
    found = newest.cte("found", recursive=True)
    before = (
        sa_select(func.max(col(RolloutSample.step)))
        .where(*is_of, col(RolloutSample.step) < found.c.step)
        .scalar_subquery()
    )
    found = found.union_all(
        sa_select(before, found.c.place + 1).where(found.c.step.is_not(None), found.c.place < limit)
    )
    return list(
        session.connection().execute(sa_select(found.c.step).where(found.c.step.is_not(None))).scalars()
    )


def list_steps(
    session: Session, *, job_id: str, split: str | None
) -> list[tuple[int, str, int, float | None]]:
    """List the steps with their split, number of responses and mean score, in order."""
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
    rollout_groups.truncate(session, job_id=job_id, last_step=last_step)


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
    """Return the number, or None if it is not finite: JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None
