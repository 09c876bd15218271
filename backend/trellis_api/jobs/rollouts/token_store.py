"""Keeps what was measured of tokens, beside the few sampled responses that have it.

It goes with its response: the database removes it where that is removed.
"""

from collections.abc import Sequence

from sqlalchemy import insert
from sqlmodel import Session, col, select
from trellis_contracts.events import RolloutsEvent, TokenTrace

from trellis_api.core.texts import storable
from trellis_api.jobs.models import RolloutSample, RolloutTokens

#: Traces of one event that are kept; those of our trainers have fewer.
MAX_TRACES = 16


def write(session: Session, *, job_id: str, event: RolloutsEvent) -> None:
    """Keep the traces of an event whose responses were written just now, by the holder of the job's lock."""
    traced = [place for place, rollout in enumerate(event.rollouts) if rollout.tokens is not None]
    if not traced:
        return
    place = {"job_id": job_id, "split": event.split, "step": event.step}
    newest = (
        select(RolloutSample.id)
        .where(
            RolloutSample.job_id == job_id,
            RolloutSample.split == event.split,
            RolloutSample.step == event.step,
        )
        .order_by(col(RolloutSample.id).desc())
        .limit(len(event.rollouts))
    )
    ids = list(reversed(session.exec(newest).all()))
    rows = [
        {**place, "rollout_id": ids[number], "trace": _as_json(event.rollouts[number].tokens)}
        for number in traced[:MAX_TRACES]
    ]
    session.connection().execute(insert(RolloutTokens), rows)


def find_step(session: Session, *, job_id: str, split: str, step: int | None) -> int | None:
    """Return the step with traces that is nearest to ``step``, the earlier of two; None: the newest."""
    steps = select(RolloutTokens.step).where(RolloutTokens.job_id == job_id, RolloutTokens.split == split)
    before = steps if step is None else steps.where(RolloutTokens.step <= step)
    earlier = session.exec(before.order_by(col(RolloutTokens.step).desc()).limit(1)).first()
    if step is None or earlier == step:
        return earlier
    after = steps.where(RolloutTokens.step > step).order_by(col(RolloutTokens.step)).limit(1)
    found = [each for each in (earlier, session.exec(after).first()) if each is not None]
    return min(found, key=lambda each: (abs(each - step), each), default=None)


def list_of_step(session: Session, *, job_id: str, split: str, step: int) -> Sequence[RolloutTokens]:
    """List the traces of a step, in the order in which the responses arrived."""
    statement = select(RolloutTokens).where(
        RolloutTokens.job_id == job_id, RolloutTokens.split == split, RolloutTokens.step == step
    )
    return session.exec(statement.order_by(col(RolloutTokens.rollout_id)).limit(MAX_TRACES)).all()


def find(session: Session, *, rollout_id: int) -> RolloutTokens | None:
    """Return the trace of one response, if it has one."""
    return session.get(RolloutTokens, rollout_id)


def _as_json(trace: TokenTrace | None) -> dict[str, object]:
    found = {} if trace is None else trace.model_dump(mode="json", exclude_none=False)
    found["texts"] = [storable(text) for text in found.get("texts", [])]
    return found
