"""Keeps the sampled responses to each prompt of a step in numbers, and reads them for many steps at once.

Derived from the responses whenever some arrive. A map of prompts and steps, however long the run, is added up
by the database.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import case, delete, func, insert
from sqlalchemy import select as sa_select
from sqlmodel import Session, col, select
from trellis_contracts.events import Rollout, RolloutsEvent
from trellis_recipes.answer_part import ACCURACY

from trellis_api.core.texts import shorten, storable
from trellis_api.jobs.models import RolloutGroup, RolloutSample

#: Of a prompt, where it is one of many.
EXCERPT_CHARACTERS = 160
#: Characters of all messages of a prompt.
MAX_MESSAGE_CHARACTERS = 65_536
MAX_MESSAGES = 200


class PromptCell(NamedTuple):
    """The responses to one prompt in one column of the map: a step, or several next to each other."""

    prompt_key: str
    column: int
    #: The newest step of the column at which the prompt was answered.
    step: int
    responses: int
    mean: float | None
    tokens: int
    #: Groups, and those of them whose responses all scored the same.
    groups: int
    uniform: int


class PromptRow(NamedTuple):
    """One prompt over all steps."""

    prompt_key: str
    excerpt: str
    steps: int
    mean: float | None


@dataclass(frozen=True)
class GroupTotals:
    """Groups of several responses, and what became of them."""

    groups: int
    uniform: int
    #: Of the uniform ones: every response right, every response wrong; None where rewards do not say.
    all_correct: int | None
    all_wrong: int | None
    tokens: int
    uniform_tokens: int


def hash_prompt(prompt: str) -> str:
    """Return the key of a prompt whose sender gave none."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


def summarise(session: Session, *, job_id: str, event: RolloutsEvent) -> None:
    """Write the groups of the event's step anew, from all of its responses that are kept."""
    # What an event does not say of a prompt, an earlier one of the step may have said.
    texts = _read_texts(session, job_id=job_id, event=event)
    for group, own in _collect_texts(event.rollouts).items():
        texts[group] = {**texts.get(group, {}), **own}
    forget(session, job_id=job_id, split=event.split, step=event.step)
    columns = sa_select(
        col(RolloutSample.group),
        col(RolloutSample.attempt),
        col(RolloutSample.score),
        col(RolloutSample.response_tokens),
        col(RolloutSample.reward_parts),
    ).where(
        col(RolloutSample.job_id) == job_id,
        col(RolloutSample.split) == event.split,
        col(RolloutSample.step) == event.step,
    )
    groups: dict[str, list[Any]] = {}
    for row in session.connection().execute(columns.order_by(col(RolloutSample.id))):
        groups.setdefault(row[0], []).append(row)
    place = {"job_id": job_id, "split": event.split, "step": event.step}
    rows = [
        {**place, "group": group, "messages": None, **texts[group], **_count(members)}
        for group, members in groups.items()
        if group in texts
    ]
    if rows:
        session.connection().execute(insert(RolloutGroup), rows)


def forget(session: Session, *, job_id: str, split: str, step: int) -> None:
    """Remove the groups of one step."""
    session.exec(
        delete(RolloutGroup).where(
            col(RolloutGroup.job_id) == job_id,
            col(RolloutGroup.split) == split,
            col(RolloutGroup.step) == step,
        )
    )


def truncate(session: Session, *, job_id: str, last_step: int) -> None:
    """Remove the groups behind ``last_step``."""
    session.exec(
        delete(RolloutGroup).where(col(RolloutGroup.job_id) == job_id, col(RolloutGroup.step) > last_step)
    )


def total(session: Session, *, job_id: str, split: str, step: int | None = None) -> GroupTotals:
    """Add up the groups of a step, or of all steps."""
    is_uniform = col(RolloutGroup.is_uniform)
    is_right = is_uniform & (col(RolloutGroup.correct) == col(RolloutGroup.count))
    is_wrong = is_uniform & (col(RolloutGroup.correct) == 0)
    statement = sa_select(
        func.count(),
        _count_where(is_uniform),
        _count_where(is_right),
        _count_where(is_wrong),
        func.count(col(RolloutGroup.correct)),
        func.coalesce(func.sum(col(RolloutGroup.tokens)), 0),
        func.coalesce(func.sum(case((is_uniform, col(RolloutGroup.tokens)), else_=0)), 0),
    ).where(col(RolloutGroup.job_id) == job_id, col(RolloutGroup.split) == split, col(RolloutGroup.count) > 1)
    if step is not None:
        statement = statement.where(col(RolloutGroup.step) == step)
    groups, uniform, right, wrong, judged, tokens, uniform_tokens = (
        session.connection().execute(statement).one()
    )
    # "All right" of some groups only would be a share of an unknown whole.
    is_judged = groups > 0 and judged == groups
    return GroupTotals(
        groups,
        int(uniform),
        int(right) if is_judged else None,
        int(wrong) if is_judged else None,
        int(tokens),
        int(uniform_tokens),
    )


def list_prompts(session: Session, *, job_id: str, split: str, limit: int) -> tuple[list[PromptRow], int]:
    """List the prompts answered at the most steps, lowest mean score first, and count all prompts."""
    steps = func.count(func.distinct(col(RolloutGroup.step)))
    statement = (
        select(RolloutGroup.prompt_key, func.min(RolloutGroup.excerpt), steps, _mean())
        .where(RolloutGroup.job_id == job_id, RolloutGroup.split == split)
        .group_by(col(RolloutGroup.prompt_key))
    )
    distinct = select(func.count(func.distinct(col(RolloutGroup.prompt_key))))
    count = session.exec(distinct.where(RolloutGroup.job_id == job_id, RolloutGroup.split == split)).one()
    most = statement.order_by(steps.desc(), col(RolloutGroup.prompt_key)).limit(limit)
    rows = [PromptRow(*row) for row in session.exec(most)]
    # Those without a score stand behind all others.
    return sorted(rows, key=lambda row: (row.mean is None, row.mean or 0.0, row.prompt_key)), count


def list_steps(session: Session, *, job_id: str, split: str, limit: int) -> tuple[list[int], int]:
    """List the first step of each column, and how many steps a column spans: 1 while all of them fit."""
    where = (RolloutGroup.job_id == job_id, RolloutGroup.split == split)
    first, last, distinct = session.exec(
        select(
            func.min(RolloutGroup.step),
            func.max(RolloutGroup.step),
            func.count(func.distinct(col(RolloutGroup.step))),
        ).where(*where)
    ).one()
    if first is None or last is None:
        return [], 1
    width = 1 if distinct <= limit else -(-(last - first + 1) // limit)
    column = (col(RolloutGroup.step) - first) // width
    found = session.exec(select(column).where(*where).distinct().order_by(column))
    return [first + number * width for number in found], width


def list_cells(
    session: Session,
    *,
    job_id: str,
    split: str,
    prompt_keys: Sequence[str],
    columns: Sequence[int],
    width: int,
) -> list[PromptCell]:
    """List every cell of the map of these prompts that has responses."""
    if not columns:
        return []
    first = columns[0]
    places = {(step - first) // width: place for place, step in enumerate(columns)}
    number = (col(RolloutGroup.step) - first) // width
    statement = (
        sa_select(
            col(RolloutGroup.prompt_key),
            number,
            func.max(col(RolloutGroup.step)),
            func.sum(col(RolloutGroup.count)),
            _mean(),
            func.sum(col(RolloutGroup.tokens)),
            func.count(),
            _count_where(col(RolloutGroup.is_uniform)),
        )
        .where(
            col(RolloutGroup.job_id) == job_id,
            col(RolloutGroup.split) == split,
            col(RolloutGroup.prompt_key).in_(prompt_keys),
        )
        .group_by(col(RolloutGroup.prompt_key), number)
    )
    return [
        PromptCell(key, places[bucket], step, count, mean, int(tokens), groups, int(uniform))
        for key, bucket, step, count, mean, tokens, groups, uniform in session.connection().execute(statement)
        if bucket in places
    ]


def list_steps_of_prompt(
    session: Session, *, job_id: str, split: str, prompt_key: str, before: int | None, limit: int
) -> Sequence[tuple[int, int]]:
    """List the steps before ``before`` at which a prompt was answered, newest first, with response counts."""
    statement = select(RolloutGroup.step, func.sum(RolloutGroup.count)).where(
        RolloutGroup.job_id == job_id,
        RolloutGroup.split == split,
        RolloutGroup.prompt_key == prompt_key,
    )
    if before is not None:
        statement = statement.where(RolloutGroup.step < before)
    newest_first = statement.group_by(col(RolloutGroup.step)).order_by(col(RolloutGroup.step).desc())
    return [(step, int(responses)) for step, responses in session.exec(newest_first.limit(limit))]


def list_of_prompt(
    session: Session, *, job_id: str, split: str, prompt_key: str, steps: Sequence[int]
) -> Sequence[RolloutGroup]:
    """List the groups of one prompt at some steps, newest step first."""
    statement = select(RolloutGroup).where(
        RolloutGroup.job_id == job_id,
        RolloutGroup.split == split,
        RolloutGroup.prompt_key == prompt_key,
        col(RolloutGroup.step).in_(steps),
    )
    return session.exec(statement.order_by(col(RolloutGroup.step).desc(), col(RolloutGroup.group))).all()


def count_of_prompt(session: Session, *, job_id: str, split: str, prompt_key: str) -> int:
    """Count the responses to one prompt at all steps."""
    statement = select(func.coalesce(func.sum(RolloutGroup.count), 0)).where(
        RolloutGroup.job_id == job_id,
        RolloutGroup.split == split,
        RolloutGroup.prompt_key == prompt_key,
    )
    return int(session.exec(statement).one())


def map_groups(
    session: Session, *, job_id: str, split: str, step: int, groups: Sequence[str]
) -> dict[str, RolloutGroup]:
    """Return these groups of a step by name; at most a page of them."""
    if not groups:
        return {}
    statement = select(RolloutGroup).where(
        RolloutGroup.job_id == job_id,
        RolloutGroup.split == split,
        RolloutGroup.step == step,
        col(RolloutGroup.group).in_(groups),
    )
    return {row.group: row for row in session.exec(statement)}


def _mean() -> Any:
    """Compute the mean score over all scored responses of several groups."""
    scored = func.sum(col(RolloutGroup.scored))
    return func.sum(col(RolloutGroup.mean) * col(RolloutGroup.scored)) / func.nullif(scored, 0)


def _count_where(condition: Any) -> Any:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _collect_texts(rollouts: Sequence[Rollout]) -> dict[str, dict[str, Any]]:
    """Collect the key, excerpt and messages of each group's prompt."""
    found: dict[str, dict[str, Any]] = {}
    for rollout in rollouts:
        prompt = storable(rollout.prompt)
        key = storable(rollout.prompt_key) if rollout.prompt_key else hash_prompt(prompt)
        texts = found.setdefault(
            storable(rollout.group),
            {"prompt_key": key, "excerpt": prompt[:EXCERPT_CHARACTERS]},
        )
        if "messages" not in texts and rollout.messages:
            texts["messages"] = _as_messages(rollout)
            # Without the words of a chat template, and the system's, which all prompts share.
            texts["excerpt"] = texts["messages"][-1]["content"][:EXCERPT_CHARACTERS]
    return found


def _as_messages(rollout: Rollout) -> list[dict[str, str]]:
    messages = (rollout.messages or [])[:MAX_MESSAGES]
    limit = MAX_MESSAGE_CHARACTERS // len(messages)
    return [
        {"role": storable(each.role)[:32], "content": shorten(storable(each.content), limit=limit)}
        for each in messages
    ]


def _read_texts(session: Session, *, job_id: str, event: RolloutsEvent) -> dict[str, dict[str, Any]]:
    """Read the prompt texts that an earlier event stored for the step."""
    statement = select(RolloutGroup).where(
        RolloutGroup.job_id == job_id,
        RolloutGroup.split == event.split,
        RolloutGroup.step == event.step,
    )
    return {
        row.group: {"prompt_key": row.prompt_key, "excerpt": row.excerpt, "messages": row.messages}
        for row in session.exec(statement)
    }


def _count(members: Sequence[Any]) -> dict[str, Any]:
    scores = [score for _, _, score, _, _ in members if score is not None]
    right = [parts.get(ACCURACY) for *_, parts in members]
    return {
        "attempt": max(attempt for _, attempt, *_ in members),
        "count": len(members),
        "scored": len(scores),
        "mean": sum(scores) / len(scores) if scores else None,
        "lowest": min(scores, default=None),
        "highest": max(scores, default=None),
        "correct": None if None in right else sum(accuracy >= 1.0 for accuracy in right),
        "is_uniform": len(members) > 1 and len(scores) == len(members) and len(set(scores)) == 1,
        "tokens": sum(tokens for _, _, _, tokens, _ in members),
    }
