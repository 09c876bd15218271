"""What is deleted while something that needs it is being created: one of the two waits."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from sqlmodel import Session
from sqlmodel import delete as delete_rows
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as data_tasks
from trellis_api.datasets import service as datasets
from trellis_api.datasets.errors import DatasetInUse
from trellis_api.datasets.models import Dataset
from trellis_api.job_pipelines import service as job_pipelines
from trellis_api.job_pipelines.errors import InvalidJobPipeline
from trellis_api.job_pipelines.models import JobPipeline
from trellis_api.job_pipelines.schemas import JobPipelineCreate, StageCreate
from trellis_api.jobs import repository, service, submit
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.errors import (
    CheckpointInUse,
    CheckpointPruned,
    ExportNameTaken,
    UnknownDataset,
    UnknownModel,
)
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.jobs.schemas import ExportCreate, JobCreate
from trellis_api.models import service as models
from trellis_api.models.errors import ModelInUse
from trellis_api.models.models import Model
from trellis_api.sweeps import service as sweeps
from trellis_api.sweeps.errors import InvalidSweep
from trellis_api.sweeps.models import Sweep
from trellis_api.sweeps.schemas import SweepCreate
from trellis_contracts.data_tasks import StatisticsTask
from trellis_contracts.states import JobState

#: Long enough for a thread to run into a lock.
PAUSE_S = 0.3

#: Locks of rows: PostgreSQL and SQLite have none in common.
pytestmark = pytest.mark.smoke


@pytest.fixture
def database(settings: Settings, migrated: Database) -> Iterator[Database]:
    """Transactions of their own, which really commit; what they leave is removed."""
    settings.data_root.mkdir(parents=True, exist_ok=True)
    yield migrated
    with migrated.write() as session:
        for job in repository.list_queued(session):
            repository.delete_job(session, job_id=job.id)
            repository.delete_purge(session, job_id=job.id)
        session.exec(delete_rows(JobPipeline))
        session.exec(delete_rows(Sweep))
        for row in datasets.repository.list_datasets(session, text=None, after=None, limit=99):
            session.delete(row)
        for left in models.repository.list_models(session, text=None, state=None, after=None, limit=99):
            session.delete(left)


@pytest.fixture(params=["job", "pipeline", "sweep"])
def create(
    request: pytest.FixtureRequest, settings: Settings, model: Model, dataset: Dataset
) -> Callable[[Session], object]:
    training = {"recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset.id}
    job = JobCreate.model_validate({"name": "a job", "model": model.id, **training})
    if request.param == "job":
        return lambda session: submit.submit(session, request=job, settings=settings)
    if request.param == "pipeline":
        stage = StageCreate.model_validate({"id": "train", "model": {"base": model.id}, **training})
        pipeline = JobPipelineCreate(name="a pipeline", stages=[stage])
        return lambda session: job_pipelines.create(session, settings, request=pipeline)
    sweep = SweepCreate(name="a sweep", job=job, seeds=[1, 2])
    return lambda session: sweeps.create(session, settings, request=sweep)


@pytest.fixture(params=["dataset", "model"])
def delete(
    request: pytest.FixtureRequest, settings: Settings, model: Model, dataset: Dataset
) -> Callable[[Session], object]:
    if request.param == "dataset":
        return lambda session: datasets.delete(session, settings, dataset_id=dataset.id)
    return lambda session: models.delete(session, settings, model_id=model.id)


def race(
    database: Database, first: Callable[[Session], object], second: Callable[[Session], object]
) -> DomainError | None:
    """Begin ``second`` when ``first`` has done its work but has not committed; what ``second`` raises."""
    has_begun = threading.Event()

    def follow() -> DomainError | None:
        has_begun.set()
        try:
            with database.write() as session:
                second(session)
        except DomainError as error:
            return error
        return None

    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            first(session)
            outcome = pool.submit(follow)
            has_begun.wait(10)
            threading.Event().wait(PAUSE_S)
            assert not outcome.done()
        return outcome.result(30)


def test_what_is_being_created_keeps_what_it_needs(
    database: Database, create: Callable[[Session], object], delete: Callable[[Session], object]
) -> None:
    error = race(database, create, delete)

    assert isinstance(error, DatasetInUse | ModelInUse)


def test_what_is_being_deleted_is_not_given_to_anything_new(
    database: Database, create: Callable[[Session], object], delete: Callable[[Session], object]
) -> None:
    error = race(database, delete, create)

    assert isinstance(error, UnknownDataset | UnknownModel | InvalidJobPipeline | InvalidSweep)


def test_jobs_that_need_the_same_do_not_wait_for_each_other(
    database: Database, model: Model, dataset: Dataset
) -> None:
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")

    with database.write() as one, database.write() as other:
        for session in (one, other):
            assert datasets.repository.lock_dataset(session, dataset_id=dataset.id, is_shared=True)
            assert models.repository.lock_model(session, model_id=model.id, is_shared=True)


@pytest.fixture
def failed_task(database: Database, dataset: Dataset) -> Iterator[str]:
    """A task of the dataset that may be taken up again."""
    with database.write() as session:
        order = StatisticsTask()
        task = data_tasks.create(session, request=order, dataset_id=dataset.id, version_id=dataset.head)
        data_tasks.cancel(session, task_id=task.id)
    yield task.id
    with database.write() as session:
        data_tasks.repository.delete_task(session, task_id=task.id)


def test_a_task_is_not_taken_up_while_its_dataset_is_being_deleted(
    database: Database, settings: Settings, dataset: Dataset, failed_task: str
) -> None:
    """Both want the dataset and the task; in different orders each would wait for the other."""

    def hold_and_delete(session: Session) -> None:
        assert datasets.repository.lock_dataset(session, dataset_id=dataset.id)
        outcome.append(pool.submit(follow))
        threading.Event().wait(PAUSE_S)
        datasets.delete(session, settings, dataset_id=dataset.id)

    def follow() -> str | None:
        try:
            with database.write() as session:
                data_tasks.retry(session, task_id=failed_task)
        except DomainError as error:
            return error.code
        return None

    outcome: list[Future[str | None]] = []
    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            hold_and_delete(session)
        assert outcome[0].result(30) == "data_task_not_found"


@pytest.fixture
def trained(database: Database, settings: Settings, model: Model, dataset: Dataset) -> Iterator[str]:
    """A finished training with a checkpoint of step 3."""
    job = Job(
        id=new_id("job"), name="source", recipe="grpo", model_id=model.id, dataset_id=dataset.id,
        state=JobState.SUCCEEDED,
    )  # fmt: skip
    folder = settings.checkpoint_dir(job.id) / "global_step_3"
    folder.mkdir(parents=True)
    with database.write() as session:
        repository.add_job(session, job=job, tags=[])
        session.add(
            Checkpoint(job_id=job.id, step=3, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
        )
    yield job.id
    with database.write() as session:
        repository.delete_job(session, job_id=job.id)
        repository.delete_purge(session, job_id=job.id)


@pytest.fixture
def export(settings: Settings, trained: str) -> Callable[[Session], object]:
    request = ExportCreate(name="made")
    return lambda session: exports.request_export(
        session, job_id=trained, step=3, request=request, settings=settings
    )


def test_of_two_exports_to_one_name_one_is_queued(
    database: Database, export: Callable[[Session], object]
) -> None:
    error = race(database, export, export)

    assert isinstance(error, ExportNameTaken)


def test_a_checkpoint_that_is_being_exported_keeps_its_job(
    database: Database, export: Callable[[Session], object], trained: str
) -> None:
    error = race(database, export, lambda session: service.delete_job(session, job_id=trained))

    assert isinstance(error, CheckpointInUse)


def test_a_checkpoint_that_is_being_removed_is_not_exported(
    database: Database, export: Callable[[Session], object], trained: str
) -> None:
    error = race(database, lambda session: checkpoints.delete(session, job_id=trained, step=3), export)

    assert isinstance(error, CheckpointPruned)
