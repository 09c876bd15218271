"""Whether stages fit together and each could run, before any of them does."""

from typing import Any

from pydantic import ValidationError
from sqlmodel import Session

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.evaluations.create import check_plan
from trellis_api.evaluations.schemas import EvaluationPlan, ModelTarget
from trellis_api.job_pipelines.errors import InvalidJobPipeline
from trellis_api.job_pipelines.schemas import JobPipelineCreate, StageCreate
from trellis_api.job_pipelines.states import find_cycle
from trellis_api.jobs import submit
from trellis_api.jobs.schemas import ExportAs, JobCreate

Issues = list[dict[str, Any]]


def check_stages(session: Session, settings: Settings, *, request: JobPipelineCreate) -> None:
    """Raise ``InvalidJobPipeline`` with everything that is wrong.

    A stage whose model does not exist yet is checked with the one that its chain begins with, which has the
    same form.
    """
    issues = _check_graph(request.stages)
    if not issues:
        by_id = {stage.id: stage for stage in request.stages}
        for index, stage in enumerate(request.stages):
            problems = _check_stage(session, settings, stage, find_root(stage, by_id))
            issues += [
                {**problem, "field": f"stages.{index}.{problem.get('field') or ''}".rstrip(".")}
                for problem in problems
            ]
    if issues:
        raise InvalidJobPipeline(issues[0]["message"], issues)


def _check_graph(stages: list[StageCreate]) -> Issues:
    issues: Issues = []
    ids = [stage.id for stage in stages]
    by_id = {stage.id: stage for stage in stages}
    for index, stage in enumerate(stages):
        if ids.index(stage.id) != index:
            issues.append(_issue("stage_twice", f"stages.{index}.id", f"Duplicate stage ID '{stage.id}'."))
        for need in stage.all_needs:
            if need not in by_id or need == stage.id:
                message = f"'{stage.id}' needs '{need}', which is no other stage of the pipeline."
                field = "model.stage" if need == stage.model.stage else "needs"
                issues.append(_issue("unknown_stage", f"stages.{index}.{field}", message))
        source = by_id.get(stage.model.stage or "")
        if source is not None and (source.kind != "train" or not source.exports):
            message = f"'{source.id}' produces no model for '{stage.id}'."
            issues.append(_issue("stage_makes_no_model", f"stages.{index}.model.stage", message))
    if not issues and (circle := find_cycle({stage.id: stage.all_needs for stage in stages})):
        message = f"Circular dependency between stages: {', '.join(circle)}."
        issues.append(_issue("stages_in_circle", "stages", message))
    return issues


def find_root(stage: StageCreate, by_id: dict[str, StageCreate]) -> str:
    """Return the registered model that a stage's chain of models begins with."""
    while stage.model.stage is not None:
        stage = by_id[stage.model.stage]
    return str(stage.model.base)


def _check_stage(session: Session, settings: Settings, stage: StageCreate, model_id: str) -> Issues:
    try:
        if stage.kind == "evaluate":
            check_plan(session, settings, plan=evaluation_plan(stage, model_id=model_id))
            return []
        preview = submit.preview(
            session,
            request=job_request(stage, model_id=model_id, name=stage.id),
            settings=settings,
            with_forecast=False,
        )
    except ValidationError as error:
        return [
            _issue("invalid_value", ".".join(str(part) for part in each["loc"]), each["msg"])
            for each in error.errors()
        ]
    except DomainError as error:
        details = error.details if isinstance(error.details, list) else []
        return [{"message": error.message, **each} for each in details] or [
            _issue(error.code, "", error.message)
        ]
    return [issue.model_dump(mode="json") for issue in preview.errors]


def job_request(stage: StageCreate, *, model_id: str, name: str, export_name: str | None = None) -> JobCreate:
    """Build the job request of a training stage."""
    shared = stage.model_dump(
        include=set(JobCreate.model_fields)
        & set(StageCreate.model_fields) - {"model", "columns", "resources"}
    )
    export = ExportAs(name=export_name, best_by=stage.best_by, mode=stage.mode) if export_name else None
    return JobCreate(
        **shared,
        name=name,
        model=model_id,
        columns=stage.columns,
        resources=stage.resources,
        export_as=export,
    )


def evaluation_plan(stage: StageCreate, *, model_id: str) -> EvaluationPlan:
    """Build the evaluation plan of an evaluation stage."""
    return EvaluationPlan(
        targets=[ModelTarget(model=model_id)],
        benchmarks=stage.benchmarks or [],
        engine=stage.engine,
        seed=stage.seed,
    )


def _issue(code: str, field: str, message: str) -> dict[str, Any]:
    return {"code": code, "field": field, "message": message}
