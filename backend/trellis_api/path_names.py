"""Names in paths: where an address takes an ID it takes the name as well, as bodies of requests do."""

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session

from trellis_api.core.database import Database
from trellis_api.core.dependencies import DatabaseDep
from trellis_api.core.errors import NotFound
from trellis_api.core.ids import is_id
from trellis_api.core.texts import storable
from trellis_api.datasets.errors import DatasetNotFound
from trellis_api.environments.errors import EnvironmentNotFound
from trellis_api.evaluations.errors import EvaluationNotFound
from trellis_api.evaluations.models import Evaluation
from trellis_api.job_pipelines.errors import JobPipelineNotFound
from trellis_api.job_pipelines.models import JobPipeline
from trellis_api.jobs.errors import JobNotFound
from trellis_api.jobs.names import JOBS
from trellis_api.models.errors import ModelNotFound
from trellis_api.names.resolve import DATASETS, ENVIRONMENTS, MODELS, WORKFLOWS, Kind, find_id
from trellis_api.pipelines.errors import PipelineNotFound
from trellis_api.pipelines.models import SavedPipeline
from trellis_api.reports.errors import ReportNotFound
from trellis_api.reports.models import Report
from trellis_api.rewards.errors import RewardFileNotFound
from trellis_api.rewards.models import RewardFile
from trellis_api.sweeps.errors import SweepNotFound
from trellis_api.sweeps.repository import SWEEPS
from trellis_api.workflows.errors import WorkflowNotFound

#: Parameters of paths: what they are the IDs of, and the error where nothing is called so.
KINDS: dict[str, tuple[Kind, type[NotFound]]] = {
    "job_id": (JOBS, JobNotFound),
    "model_id": (MODELS, ModelNotFound),
    "dataset_id": (DATASETS, DatasetNotFound),
    "environment_id": (ENVIRONMENTS, EnvironmentNotFound),
    "workflow_id": (WORKFLOWS, WorkflowNotFound),
    "pipeline_id": (Kind(SavedPipeline, "pip", "data pipelines"), PipelineNotFound),
    "sweep_id": (SWEEPS, SweepNotFound),
    "evaluation_id": (Kind(Evaluation, "ev", "evaluations"), EvaluationNotFound),
    "job_pipeline_id": (Kind(JobPipeline, "jpl", "workflows"), JobPipelineNotFound),
    "report_id": (Kind(Report, "rep", "reports"), ReportNotFound),
    "file_id": (Kind(RewardFile, "rwf", "reward files"), RewardFileNotFound),
}


async def use_path_names(request: Request, database: DatabaseDep) -> None:
    """Replace names in the path with IDs, as a dependency of a router.

    Endpoints get nothing but what has the form of an ID, so they may use it in paths of files. Raises
    ``AmbiguousName``, or the kind's own error if nothing has that name.
    """
    named = {
        parameter: value
        for parameter, value in request.path_params.items()
        if (found := KINDS.get(parameter)) is not None and not is_id(value, prefix=found[0].prefix)
    }
    if named:
        request.path_params.update(await run_in_threadpool(_find_ids, database, named))


def _find_ids(database: Database, named: dict[str, str]) -> dict[str, str]:
    with database.read() as session:
        return {parameter: _find_id(session, parameter, name) for parameter, name in named.items()}


def _find_id(session: Session, parameter: str, name: str) -> str:
    kind, error = KINDS[parameter]
    found = find_id(session, kind, name, field=parameter)
    if not is_id(found, prefix=kind.prefix):
        raise error(f"None of the {kind.noun} has the ID or name '{storable(name)[:200]}'.")
    return found
