"""``/evaluations``: measure models and checkpoints on benchmarks, and read what came of it."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Path, Query
from trellis_contracts import tasks as task_names
from trellis_contracts.evaluation import LABEL, Verdict
from trellis_contracts.states import JobState

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import QueryText
from trellis_api.evaluations import create, estimate, presentation, samples, service
from trellis_api.evaluations.names import with_ids
from trellis_api.evaluations.repository import EvaluationFilter
from trellis_api.evaluations.samples import SampleQuery
from trellis_api.evaluations.schemas import (
    Changed,
    EvaluationCreate,
    EvaluationEstimate,
    EvaluationManifest,
    EvaluationPlan,
    EvaluationRead,
    EvaluationsCreated,
    SamplePage,
    SampleRead,
)
from trellis_api.jobs.dependencies import TRY_TEMPLATES
from trellis_api.jobs.names import JOBS
from trellis_api.names.resolve import MODELS, find_filter_id

Responses = dict[int | str, dict[str, Any]]
router = APIRouter(prefix="/evaluations", tags=["evaluations"], responses={401: ERROR_RESPONSES[401]})
FOUND: Responses = {404: ERROR_RESPONSES[404]}
CONFLICT: Responses = {**FOUND, 409: ERROR_RESPONSES[409]}
MALFORMED: Responses = {409: ERROR_RESPONSES[409], 422: ERROR_RESPONSES[422]}
EvaluationId = Annotated[str, Path(description="ID or name of the evaluation.")]
#: Of another evaluation.
OtherId = Annotated[str | None, Query(description="Evaluation to compare with.", pattern=id_pattern("ev"))]
#: A store's place for a sample is 1024 times its position, in 64 bits.
MAX_POSITION = 2**40


@router.post(
    "",
    status_code=201,
    summary="Evaluate models or checkpoints",
    responses=MALFORMED,
    dependencies=[TRY_TEMPLATES],
)
def create_evaluations(
    body: EvaluationCreate,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> EvaluationsCreated:
    """Create one evaluation per target. Missing benchmarks are downloaded first."""
    rows = create.create(session, settings, request=with_ids(session, body))
    tasks.send_later(background, task_names.INSTALL_BENCHMARKS)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return EvaluationsCreated(items=presentation.present_all(session, evaluations=rows, has_detail=True))


@router.post("/estimate", summary="Estimate evaluations", responses=MALFORMED, dependencies=[TRY_TEMPLATES])
def estimate_evaluations(
    body: EvaluationPlan, session: WriteSession, settings: SettingsDep
) -> EvaluationEstimate:
    """Estimate from finished evaluations of this platform; nothing is queued."""
    return estimate.estimate(session, settings, plan=with_ids(session, body))


@router.get("", summary="List evaluations, newest first")
def list_evaluations(
    session: ReadSession,
    model: Annotated[QueryText | None, Query(description="Of this model, by ID or name.")] = None,
    job: Annotated[
        QueryText | None,
        Query(description="Of this job's checkpoints, by ID or name."),
    ] = None,
    benchmark: Annotated[
        str | None, Query(pattern=r"^[a-z0-9_-]{1,64}$", description="With this benchmark.")
    ] = None,
    state: Annotated[list[JobState] | None, Query(description="Any of these states.")] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[EvaluationRead]:
    """List the evaluations that match all given filters."""
    model_id = find_filter_id(session, MODELS, model, field="model")
    job_id = find_filter_id(session, JOBS, job, field="job")
    wanted = EvaluationFilter(
        model_id=model_id, job_id=job_id, benchmark=benchmark, states=tuple(state or ())
    )
    return presentation.list_page(session, wanted=wanted, cursor=cursor, limit=limit)


@router.get("/{evaluation_id}", summary="Read an evaluation", responses=FOUND)
def read_evaluation(evaluation_id: EvaluationId, session: ReadSession) -> EvaluationRead:
    """Return an evaluation with its breakdown and, while it runs, its scores so far."""
    row = service.get_evaluation(session, evaluation_id=evaluation_id)
    return presentation.present(session, evaluation=row)


@router.get("/{evaluation_id}/manifest", summary="Evaluation manifest", responses=CONFLICT)
def read_manifest(evaluation_id: EvaluationId, session: ReadSession) -> EvaluationManifest:
    """Return the engine, versions, hash of the prompts, revisions of the data, seed and chat template."""
    manifest = service.get_manifest(session, evaluation_id=evaluation_id)
    return EvaluationManifest(evaluation_id=evaluation_id, manifest=manifest)


@router.get(
    "/{evaluation_id}/samples",
    summary="Samples of a benchmark",
    responses={**CONFLICT, 422: ERROR_RESPONSES[422]},
)
def list_samples(
    evaluation_id: EvaluationId,
    label: Annotated[str, Query(pattern=LABEL, description="Of the benchmark.")],
    database: DatabaseDep,
    settings: SettingsDep,
    verdict: Annotated[list[Verdict] | None, Query(description="Any of these.")] = None,
    group_kind: Annotated[str | None, Query(max_length=200)] = None,
    group: Annotated[str | None, Query(max_length=500, description="Name of a group of that kind.")] = None,
    search: Annotated[
        str | None, Query(max_length=200, description="In prompts, answers, references and errors.")
    ] = None,
    against: OtherId = None,
    changed: Annotated[
        Changed | None, Query(description="Better or worse here than in `against`, or any difference.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> SamplePage:
    """List samples in sampling order of the problems. All given filters must match."""
    query = SampleQuery(
        label=label,
        verdicts=tuple(verdict or ()),
        group=(group_kind, group) if group_kind is not None and group is not None else None,
        search=search,
        against=against,
        changed=changed,
    )
    with database.read() as session:
        places = samples.locate(session, settings, evaluation_id=evaluation_id, query=query)
    return samples.read_page(places, query, cursor=cursor, limit=limit)


@router.get("/{evaluation_id}/samples/{label}/{position}/{number}", summary="One sample", responses=CONFLICT)
def read_sample(
    evaluation_id: EvaluationId,
    label: Annotated[str, Path(pattern=LABEL)],
    position: Annotated[int, Path(ge=0, le=MAX_POSITION)],
    number: Annotated[int, Path(ge=0, le=MAX_POSITION, description="Which generation of the problem.")],
    database: DatabaseDep,
    settings: SettingsDep,
    against: OtherId = None,
) -> SampleRead:
    """Return prompt and answer, with the same problem's sample in another evaluation."""
    query = SampleQuery(label=label, against=against)
    with database.read() as session:
        places = samples.locate(session, settings, evaluation_id=evaluation_id, query=query)
    return samples.read_sample(places, position=position, number=number)


@router.post("/{evaluation_id}/cancel", summary="Cancel an evaluation", responses=CONFLICT)
def cancel_evaluation(
    evaluation_id: EvaluationId, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> EvaluationRead:
    """Cancel an evaluation. Results so far are kept; a retry continues from there."""
    row = service.cancel(session, evaluation_id=evaluation_id)
    tasks.send_later(background, task_names.STOP, row.job_id)
    return presentation.present(session, evaluation=row)


@router.post("/{evaluation_id}/retry", summary="Retry an evaluation", responses=CONFLICT)
def retry_evaluation(
    evaluation_id: EvaluationId,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> EvaluationRead:
    """Retry a cancelled or failed evaluation; it continues where it stopped."""
    row = service.retry(session, settings, evaluation_id=evaluation_id)
    tasks.send_later(background, task_names.INSTALL_BENCHMARKS)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, evaluation=row)


@router.delete(
    "/{evaluation_id}", status_code=204, summary="Delete an evaluation and its files", responses=CONFLICT
)
def delete_evaluation(
    evaluation_id: EvaluationId, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> None:
    """Delete an evaluation; refused while it is queued or running."""
    service.delete(session, evaluation_id=evaluation_id)
    tasks.send_later(background, task_names.TIDY_EVALUATIONS)
    tasks.send_later(background, task_names.PURGE)
