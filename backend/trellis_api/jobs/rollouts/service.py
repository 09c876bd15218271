"""Reads the sampled responses of a job: a step page by page, one prompt over all steps, all as a map."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import cast

from sqlmodel import Session
from trellis_contracts.recipe import Engine
from trellis_contracts.rewards import RewardTerm
from trellis_recipes.mapping import reward_mixture
from trellis_recipes.reward_probes import plan_probes

from trellis_api.core.pagination import InvalidCursor, decode_cursor, encode_cursor
from trellis_api.jobs import configuration, service
from trellis_api.jobs.errors import RolloutNotFound
from trellis_api.jobs.models import RolloutGroup, RolloutSample
from trellis_api.jobs.rollouts import groups as rollout_groups
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.rollouts import token_store
from trellis_api.jobs.rollouts.pages import (
    MAX_STEP,
    Mark,
    Position,
    RolloutFilter,
    RolloutOrder,
    arrange,
    cut,
)
from trellis_api.jobs.rollouts.schemas import (
    MapCell,
    MapColumn,
    MapRow,
    ProbesRead,
    PromptMap,
    PromptRolloutPage,
    RolloutGroupRead,
    RolloutGroupTotals,
    RolloutPage,
    RolloutRead,
    RolloutStep,
    RolloutSummary,
    RolloutTokensRead,
    Split,
    TokenTraceRead,
    TracedRollout,
    TracedStep,
)

#: Steps of one prompt that are read at a time.
_STEPS_AT_ONCE = 12


def read_rollouts(
    session: Session,
    *,
    job_id: str,
    step: int | None,
    split: Split,
    wanted: RolloutFilter,
    text: str | None = None,
    order: RolloutOrder,
    cursor: str | None,
    limit: int,
    has_trajectories: bool = False,
) -> RolloutPage:
    """Read a page of the sampled responses of a step; empty if there are none."""
    after = Position.decode(cursor) if cursor else None
    # A page without a step goes on with that of the page before, whatever came meanwhile.
    step, marks = _read_marks(session, job_id=job_id, step=after.step if after else step, split=split)
    if text:
        found = rollout_store.find_texts(session, job_id=job_id, step=step, split=split, text=text)
        wanted = replace(wanted, ids=found)
    fitting = [place for place in arrange(marks, order) if wanted.fits(place[1])]
    shown, has_more = cut(fitting, after=after.key if after else None, limit=limit)
    rows = rollout_store.read(session, ids=[mark.id for _, mark in shown], has_trajectories=has_trajectories)
    numbers = _number(marks)
    names = list(dict.fromkeys(row.group for row in rows))
    groups = rollout_groups.map_groups(session, job_id=job_id, split=split, step=step, groups=names)
    return RolloutPage(
        step=step,
        split=split,
        total=len(fitting),
        items=[present_rollout(row, numbers, has_trajectory=has_trajectories) for row in rows],
        groups=[_present_group(groups[name]) for name in names if name in groups],
        next_cursor=Position(step, shown[-1][0]).encode() if has_more else None,
    )


def summarise_rollouts(session: Session, *, job_id: str, step: int | None, split: Split) -> RolloutSummary:
    """Summarize all responses of a step, without their texts."""
    step, marks = _read_marks(session, job_id=job_id, step=step, split=split)
    reasons = Counter(mark.stop_reason for mark in marks if mark.stop_reason is not None)
    return RolloutSummary(
        step=step,
        split=split,
        total=len(marks),
        scores=[mark.score for mark in marks if mark.score is not None],
        stop_reasons=dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0]))),
        reward_parts=sorted({name for mark in marks for name in mark.reward_parts}),
        probes=_read_probes(session, job_id=job_id),
        groups=_present_totals(rollout_groups.total(session, job_id=job_id, split=split, step=step)),
    )


def _read_probes(session: Session, *, job_id: str) -> ProbesRead | None:
    """Tell how tricks are scored by a job's rewards; None where it trains by none, or they are not known."""
    found = configuration.find(session, job_id=job_id)
    if found is None or found.composition.engine is not Engine.VERL_PPO:
        return None
    plan = plan_probes([RewardTerm.model_validate(term) for term in reward_mixture(found.composition.params)])
    return ProbesRead(
        scored=[term.name for term in plan.scored],
        left_out=[term.name for term in plan.left_out],
        reason=None if plan.reason is None else plan.reason.value,
    )


def read_prompt(
    session: Session,
    *,
    job_id: str,
    split: Split,
    prompt_key: str,
    to_step: int | None,
    cursor: str | None,
    limit: int,
) -> PromptRolloutPage:
    """Read a page of the responses to one prompt, newest step first; empty if the prompt is not known."""
    service.get_job(session, job_id=job_id)
    before = None if to_step is None else to_step + 1
    found = rollout_groups.list_steps_of_prompt(
        session,
        job_id=job_id,
        split=split,
        prompt_key=prompt_key,
        before=_decode_step(cursor) if cursor else before,
        limit=_STEPS_AT_ONCE + 1,
    )
    steps = _take_steps(found, limit=limit)
    groups = rollout_groups.list_of_prompt(
        session, job_id=job_id, split=split, prompt_key=prompt_key, steps=steps
    )
    items = [
        rollout
        for step in steps
        for rollout in _read_groups(
            session, job_id=job_id, split=split, step=step, names=[g.group for g in groups if g.step == step]
        )
    ]
    return PromptRolloutPage(
        split=split,
        prompt_key=prompt_key,
        total=rollout_groups.count_of_prompt(session, job_id=job_id, split=split, prompt_key=prompt_key),
        items=items,
        groups=[_present_group(group) for group in groups],
        next_cursor=encode_cursor(steps[-1]) if len(steps) < len(found) else None,
    )


def read_traces(session: Session, *, job_id: str, step: int | None, split: Split) -> TracedStep:
    """Read the responses whose tokens were kept, of the nearest step that has any."""
    service.get_job(session, job_id=job_id)
    found = token_store.find_step(session, job_id=job_id, split=split, step=step)
    if found is None:
        return TracedStep(step=None, split=split, items=[])
    traces = token_store.list_of_step(session, job_id=job_id, split=split, step=found)
    numbers = _number(rollout_store.list_marks(session, job_id=job_id, step=found, split=split))
    rows = rollout_store.read(session, ids=[trace.rollout_id for trace in traces])
    items = [
        TracedRollout(rollout=present_rollout(row, numbers), trace=TokenTraceRead.model_validate(each.trace))
        for row, each in zip(rows, traces, strict=True)
    ]
    return TracedStep(step=found, split=split, items=items)


def read_tokens(session: Session, *, job_id: str, rollout_id: int) -> RolloutTokensRead:
    """Read the token measurements of one response, if they were kept."""
    service.get_job(session, job_id=job_id)
    if rollout_store.find(session, job_id=job_id, rollout_id=rollout_id) is None:
        raise RolloutNotFound(f"Rollout {rollout_id} not found; it may have been deleted.")
    row = token_store.find(session, rollout_id=rollout_id)
    return RolloutTokensRead(trace=None if row is None else TokenTraceRead.model_validate(row.trace))


def _take_steps(found: Sequence[tuple[int, int]], *, limit: int) -> list[int]:
    """Take the first of the (step, responses) pairs, up to ``limit`` responses, but at least one step."""
    taken: list[int] = []
    total = 0
    for step, responses in found[:_STEPS_AT_ONCE]:
        total += responses
        if taken and total > limit:
            break
        taken.append(step)
    return taken


def _read_groups(
    session: Session, *, job_id: str, split: Split, step: int, names: Sequence[str]
) -> list[RolloutRead]:
    marks = rollout_store.list_marks(session, job_id=job_id, step=step, split=split)
    numbers = _number(marks)
    ids = [mark.id for mark in marks if mark.group in names]
    return [present_rollout(row, numbers) for row in rollout_store.read(session, ids=ids)]


def _decode_step(cursor: str) -> int:
    (step,) = decode_cursor(cursor, parts=1)
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= MAX_STEP:
        raise InvalidCursor("The cursor is not valid.")
    return step


def read_map(session: Session, *, job_id: str, split: Split, max_prompts: int, max_columns: int) -> PromptMap:
    """Read mean scores by prompt and step; columns of a long run span several steps."""
    service.get_job(session, job_id=job_id)
    prompts, count = rollout_groups.list_prompts(session, job_id=job_id, split=split, limit=max_prompts)
    columns, width = rollout_groups.list_steps(session, job_id=job_id, split=split, limit=max_columns)
    keys = [prompt.prompt_key for prompt in prompts]
    cells: dict[str, list[MapCell]] = {key: [] for key in keys}
    for cell in rollout_groups.list_cells(
        session, job_id=job_id, split=split, prompt_keys=keys, columns=columns, width=width
    ):
        cells[cell.prompt_key].append(
            MapCell(
                column=cell.column,
                step=cell.step,
                count=cell.responses,
                mean=cell.mean,
                tokens=cell.tokens,
                is_uniform=cell.uniform == cell.groups,
            )
        )
    return PromptMap(
        split=split,
        columns=[MapColumn(from_step=step, to_step=step + width - 1) for step in columns],
        rows=[
            MapRow(**prompt._asdict(), cells=sorted(cells[prompt.prompt_key], key=lambda cell: cell.column))
            for prompt in prompts
        ],
        prompt_count=count,
        totals=_present_totals(rollout_groups.total(session, job_id=job_id, split=split)),
    )


def _present_group(row: RolloutGroup) -> RolloutGroupRead:
    return RolloutGroupRead.model_validate(row, from_attributes=True)


def _present_totals(totals: rollout_groups.GroupTotals) -> RolloutGroupTotals:
    return RolloutGroupTotals(**asdict(totals))


def read_rollout(session: Session, *, job_id: str, rollout_id: int) -> RolloutRead:
    """Read one sampled response with its trajectory."""
    service.get_job(session, job_id=job_id)
    row = rollout_store.find(session, job_id=job_id, rollout_id=rollout_id)
    marks = rollout_store.list_marks(session, job_id=job_id, step=row.step, split=row.split) if row else []
    numbers = _number(marks)
    # A newer attempt may replace the responses of the step between the two reads.
    if row is None or rollout_id not in numbers:
        raise RolloutNotFound(f"Rollout {rollout_id} not found; it may have been deleted.")
    return present_rollout(row, numbers, has_trajectory=True)


def _read_marks(
    session: Session, *, job_id: str, step: int | None, split: Split
) -> tuple[int, Sequence[Mark]]:
    """Return the requested step, else the newest, and its responses without their texts."""
    service.get_job(session, job_id=job_id)
    if step is None:
        step = rollout_store.find_newest_step(session, job_id=job_id, split=split) or 0
    return step, rollout_store.list_marks(session, job_id=job_id, step=step, split=split)


def _number(marks: Sequence[Mark]) -> dict[int, int]:
    """Return the number of each response among those of its step, from 1."""
    return {mark.id: number for number, (_, mark) in enumerate(arrange(marks), 1)}


def present_rollout(
    row: RolloutSample, numbers: Mapping[int, int], *, has_trajectory: bool = False
) -> RolloutRead:
    """Return a response as clients read it; ``numbers`` has its place by its id."""
    fields = {
        name: getattr(row, name)
        for name in RolloutRead.model_fields
        # Touching a column that was left out would read it, row by row.
        if name != "number" and (has_trajectory or name != "trajectory")
    }
    return RolloutRead.model_validate({"trajectory": None, "number": numbers[row.id or 0], **fields})


def list_rollout_steps(session: Session, *, job_id: str, split: str | None) -> list[RolloutStep]:
    """List the steps that have sampled responses."""
    service.get_job(session, job_id=job_id)
    return [
        RolloutStep(step=step, split=cast(Split, name), count=count, mean_score=mean)
        for step, name, count, mean in rollout_store.list_steps(session, job_id=job_id, split=split)
    ]
