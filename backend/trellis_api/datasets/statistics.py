"""Statistics of versions: made with them, or asked for with lengths in a model's tokens."""

from sqlmodel import Session
from trellis_contracts.data_tasks import DataTaskKind, DataTaskState, StatisticsTask, TokensTask
from trellis_data.statistics.model import Statistics

from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as tasks_service
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import repository, service, versions
from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.schemas import StatisticsCreate, StatisticsRead, TokensCreate
from trellis_api.datasets.store import open_store
from trellis_api.datasets.version_pages import reading
from trellis_api.models.ready import require_ready

_GOING_ON = (DataTaskState.QUEUED, DataTaskState.RUNNING)


def read(
    session: Session, settings: Settings, *, dataset_id: str, revision: str | None, model: str | None
) -> StatisticsRead:
    """Return the statistics of a version."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    tasks = _list_tasks(session, version, model)
    done = next(filter(_has_result, tasks), None)
    found = done.result if done else None
    if found is None and model is None:
        with reading(dataset_id):
            store = open_store(settings)
            found = store.statistics(store.version(version.id))
    return StatisticsRead(
        version=version.id,
        model=model,
        statistics=None if found is None else Statistics.model_validate(found),
        task=tasks_service.present(session, tasks[0], with_result=False) if tasks else None,
    )


def compute(
    session: Session, *, dataset_id: str, request: StatisticsCreate, refresh: bool
) -> tuple[DataTask, bool]:
    """Ask for statistics: a computation that waits, runs or is done serves all who ask.

    Also whether it is a new one, which workers are to be told of.
    """
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    if request.model is not None:
        require_ready(session, model_id=request.model)
    for task in _list_tasks(session, version, request.model):
        if task.state in _GOING_ON or (_has_result(task) and not refresh):
            return task, False
    order = StatisticsTask(model=request.model)
    task = tasks_service.create(session, request=order, dataset_id=dataset_id, version_id=version.id)
    return task, True


def tokenize(session: Session, *, dataset_id: str, request: TokensCreate) -> DataTask:
    """Ask for rows as a model is trained on them."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    split = versions.choose_split(version, request.split)
    require_ready(session, model_id=request.model)
    order = TokensTask(
        model=request.model,
        split=split,
        offset=request.offset,
        limit=request.limit,
        max_length=request.max_length,
    )
    return tasks_service.create(session, request=order, dataset_id=dataset_id, version_id=version.id)


def _list_tasks(session: Session, version: DatasetVersion, model: str | None) -> list[DataTask]:
    """List the tasks that count the same statistics, newest first."""
    tasks = repository.list_tasks_of(
        session, dataset_id=version.dataset_id, kind=DataTaskKind.STATISTICS, version_id=version.id
    )
    return [task for task in tasks if task.request.get("model") == model]


def _has_result(task: DataTask) -> bool:
    return task.state == DataTaskState.SUCCEEDED and task.result is not None
