"""The sampled responses of a job: a step, one of them, one prompt over all steps, all prompts as a map."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter

from trellis_api.core.dependencies import ReadSession
from trellis_api.core.errors import InvalidRequest
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from trellis_api.core.texts import NO_NUL
from trellis_api.jobs.dependencies import JOB_RESPONSES, JobId
from trellis_api.jobs.rollouts import service as rollouts
from trellis_api.jobs.rollouts.pages import MAX_STEP, RolloutFilter, RolloutOrder
from trellis_api.jobs.rollouts.schemas import (
    PromptMap,
    PromptRolloutPage,
    RolloutPage,
    RolloutRead,
    RolloutStep,
    RolloutSummary,
    RolloutTokensRead,
    Split,
    TracedStep,
)

router = APIRouter(prefix="/jobs/{job_id}", tags=["results"], responses=JOB_RESPONSES)
Step = Annotated[int | None, Query(ge=0, le=MAX_STEP, description="Default the newest one.")]


@router.get("/rollouts", summary="Sampled responses of one step")
def list_rollouts(
    job_id: JobId,
    session: ReadSession,
    step: Step = None,
    split: Split = "train",
    stop_reason: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="Episodes that ended so.")
    ] = None,
    min_score: Annotated[float | None, Query(allow_inf_nan=False, description="Included.")] = None,
    max_score: Annotated[float | None, Query(allow_inf_nan=False, description="Included.")] = None,
    min_tokens: Annotated[int | None, Query(ge=0, le=MAX_STEP, description="Of the response.")] = None,
    max_tokens: Annotated[int | None, Query(ge=0, le=MAX_STEP, description="Of the response.")] = None,
    text: Annotated[
        str | None,
        Query(max_length=500, pattern=NO_NUL, description="In the prompt or the response; case is ignored."),
    ] = None,
    part: Annotated[
        str | None, Query(max_length=256, pattern=NO_NUL, description="Part of the reward that they have.")
    ] = None,
    min_part: Annotated[float | None, Query(allow_inf_nan=False, description="Of the part.")] = None,
    max_part: Annotated[float | None, Query(allow_inf_nan=False, description="Of the part.")] = None,
    group: Annotated[
        str | None, Query(max_length=256, pattern=NO_NUL, description="Responses to one prompt.")
    ] = None,
    order: Annotated[
        RolloutOrder, Query(description="Of the prompts: as sampled, or by their responses' scores.")
    ] = RolloutOrder.SAMPLED,
    trajectories: Annotated[
        bool, Query(description="With every turn of episodes; otherwise read them one by one.")
    ] = False,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> RolloutPage:
    """List responses, grouped by prompt. A cursor is only valid for the filter and order that gave it.

    While responses of the step still come, pages by score may leave a prompt out or bring it again: a late
    response moves its prompt. In the order of sampling nothing moves.
    """
    if part is None and (min_part is not None or max_part is not None):
        raise InvalidRequest("min_part and max_part need the name of a part.")
    return rollouts.read_rollouts(
        session,
        job_id=job_id,
        step=step,
        split=split,
        wanted=RolloutFilter(
            stop_reason, min_score, max_score, group, min_tokens, max_tokens, part, min_part, max_part
        ),
        text=text,
        order=order,
        cursor=cursor,
        limit=limit,
        has_trajectories=trajectories,
    )


@router.get("/rollout-summary", summary="All sampled responses of one step in numbers")
def summarise_rollouts(
    job_id: JobId, session: ReadSession, step: Step = None, split: Split = "train"
) -> RolloutSummary:
    """Return score and stop-reason statistics."""
    return rollouts.summarise_rollouts(session, job_id=job_id, step=step, split=split)


@router.get("/rollouts/{rollout_id}", summary="One sampled response, turn by turn")
def read_rollout(
    job_id: JobId, rollout_id: Annotated[int, PathParameter(ge=0, le=MAX_STEP)], session: ReadSession
) -> RolloutRead:
    """Return a response, with the trajectory of an agent's episode."""
    return rollouts.read_rollout(session, job_id=job_id, rollout_id=rollout_id)


@router.get("/rollout-steps", summary="Steps that have sampled responses")
def list_rollout_steps(
    job_id: JobId, session: ReadSession, split: Annotated[Split | None, Query()] = None
) -> list[RolloutStep]:
    """List the steps with the mean score of their samples."""
    return rollouts.list_rollout_steps(session, job_id=job_id, split=split)


@router.get("/rollout-map", summary="Mean scores by prompt and step")
def read_map(
    job_id: JobId,
    session: ReadSession,
    split: Split = "train",
    max_prompts: Annotated[int, Query(ge=1, le=200)] = 40,
    max_columns: Annotated[int, Query(ge=1, le=400)] = 100,
) -> PromptMap:
    """Return the prompts sampled at the most steps. With more steps than columns, a column spans several."""
    return rollouts.read_map(
        session, job_id=job_id, split=split, max_prompts=max_prompts, max_columns=max_columns
    )


@router.get("/prompts/{prompt_key}/rollouts", summary="Responses to one prompt, over all steps")
def read_prompt(
    job_id: JobId,
    prompt_key: Annotated[str, PathParameter(max_length=64, pattern=NO_NUL)],
    session: ReadSession,
    split: Split = "train",
    to_step: Annotated[int | None, Query(ge=0, le=MAX_STEP, description="Up to this step.")] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> PromptRolloutPage:
    """Return responses, newest step first. A page holds whole steps: one alone may exceed the limit."""
    return rollouts.read_prompt(
        session,
        job_id=job_id,
        split=split,
        prompt_key=prompt_key,
        to_step=to_step,
        cursor=cursor,
        limit=limit,
    )


@router.get("/rollout-tokens", summary="Responses of a step, token by token")
def read_traces(job_id: JobId, session: ReadSession, step: Step = None, split: Split = "train") -> TracedStep:
    """Return the responses with kept tokens of the step nearest to the requested one.

    Only a few are kept, at some steps.
    """
    return rollouts.read_traces(session, job_id=job_id, step=step, split=split)


@router.get("/rollouts/{rollout_id}/tokens", summary="One sampled response, token by token")
def read_tokens(
    job_id: JobId, rollout_id: Annotated[int, PathParameter(ge=0, le=MAX_STEP)], session: ReadSession
) -> RolloutTokensRead:
    """Return log-probability, entropy, advantage, KL and mismatch of each token, if they were kept."""
    return rollouts.read_tokens(session, job_id=job_id, rollout_id=rollout_id)
