"""What the process of an evaluation is told: which weights, which benchmarks, into which folder."""

from pathlib import Path

from sqlmodel import Session
from trellis_api.benchmarks import repository as installs
from trellis_api.benchmarks.errors import BenchmarkMissing
from trellis_api.benchmarks.installed import FOLDER, describe_files
from trellis_api.benchmarks.schemas import InstallState
from trellis_api.core.settings import Settings
from trellis_api.datasets.view import view
from trellis_api.evaluations import repository
from trellis_api.evaluations.errors import EvaluationNotFound
from trellis_api.evaluations.folder import evaluation_folder
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.service import read_request
from trellis_api.jobs import service
from trellis_api.jobs.errors import CheckpointNotFound
from trellis_api.jobs.models import Job
from trellis_api.models.errors import ModelNotReady
from trellis_api.pipelines.needs import find_judge
from trellis_contracts.evaluation import (
    AnyOrder,
    BenchmarkFiles,
    BenchmarkTask,
    CheckpointSource,
    CodeScorer,
    CustomOrder,
    EvaluationTask,
    HarnessOrder,
    JudgeScorer,
)
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import NICENESS_VARIABLE, JobSpec
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.platform_defaults import environment

from trellis_workers.evaluations.scorers import locate_scorer
from trellis_workers.jobs.export_spec import describe_base

#: What lm-evaluation-harness fetches, shared by all evaluations; no name of a benchmark begins with a dot.
_HUB_CACHE = ".hub"


def build_evaluation_spec(session: Session, settings: Settings, job: Job) -> JobSpec:
    """Build the spec of an evaluation; raises ``DomainError`` if something was deleted since the request."""
    row = repository.find_by_job(session, job_id=job.id)
    if row is None:
        raise EvaluationNotFound(str(job.evaluation_id))
    platform, request = settings.resolved_platform, read_request(row)
    model = describe_base(session, settings, job)
    if row.target_model_id is not None and not model.path:
        raise ModelNotReady(
            f"The model '{row.target_name}' was deleted or its files are missing.",
            {"model": row.target_model_id},
        )
    attempt_dir = settings.attempt_dir(job.id, job.attempt)
    return JobSpec(
        job_id=job.id,
        attempt=job.attempt,
        name=job.name,
        recipe=job.recipe,
        engine=Engine.EVALUATE,
        platform=platform,
        gpus=job.gpus,
        seed=job.seed,
        params={},
        engine_overrides=[],
        env=_describe_environment(settings),
        model=model,
        attempt_dir=str(attempt_dir),
        checkpoint_dir=str(settings.checkpoint_dir(job.id)),
        evaluation=EvaluationTask(
            evaluation_id=row.id,
            output_dir=str(evaluation_folder(settings, row.id)),
            checkpoint=_find_checkpoint(session, settings, row),
            benchmarks=[_describe(session, settings, order, attempt_dir) for order in request.benchmarks],
            engine=request.engine,
            seed=request.seed,
            hub_cache=str(settings.data_root / FOLDER / _HUB_CACHE),
        ),
        ingest_url=settings.base_url,
    )


def _describe_environment(settings: Settings) -> dict[str, str]:
    """Describe the environment: on a CPU an evaluation runs at a lower priority than trainings."""
    platform = settings.resolved_platform
    niceness = {NICENESS_VARIABLE: str(settings.evaluation_nice)} if platform == "cpu" else {}
    return {**environment(Engine.EVALUATE, platform), **niceness}


def _find_checkpoint(session: Session, settings: Settings, row: Evaluation) -> CheckpointSource | None:
    if row.target_job_id is None or row.target_step is None:
        return None
    checkpoint = service.get_usable_checkpoint(session, job_id=row.target_job_id, step=row.target_step)
    folder = service.find_folder(checkpoint, checkpoint.path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotFound(f"The checkpoint files of step {row.target_step} no longer exist.")
    source = service.get_job(session, job_id=row.target_job_id)
    return CheckpointSource(
        job_id=source.id,
        engine=get_recipe(source.recipe).engine,
        step=row.target_step,
        path=str(folder),
    )


def _describe(session: Session, settings: Settings, order: AnyOrder, attempt_dir: Path) -> BenchmarkTask:
    scorer = order.scorer if isinstance(order, CustomOrder) else None
    return BenchmarkTask(
        label=str(order.label),
        order=order,
        files=_find_files(session, settings, order),
        judge=find_judge(settings, scorer.judge) if isinstance(scorer, JudgeScorer) else None,
        scorer_path=str(locate_scorer(attempt_dir, scorer.file)) if isinstance(scorer, CodeScorer) else None,
    )


def _find_files(session: Session, settings: Settings, order: AnyOrder) -> BenchmarkFiles | None:
    if isinstance(order, HarnessOrder):
        return None
    if isinstance(order, CustomOrder):
        rows = view(session, settings, dataset_id=order.dataset, revision=order.version, split=order.split)
        return BenchmarkFiles(
            paths={"test": [str(path) for path in rows.paths]},
            revision=rows.version,
            sha256=rows.sha256,
            format=rows.format,
        )
    install = installs.find_install(session, name=order.benchmark)
    if install is None or install.state != InstallState.READY:
        reason = (install.state_reason if install else None) or "not downloaded yet"
        raise BenchmarkMissing(
            f"The files of the benchmark '{order.benchmark}' are missing: {reason}",
            {"benchmark": order.benchmark},
        )
    return describe_files(settings, order.benchmark)
