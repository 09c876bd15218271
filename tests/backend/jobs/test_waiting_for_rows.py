"""Jobs that were queued before there were versions wait until the rows of their datasets are imported."""

from collections.abc import Callable

import pytest
from trellis_api.core.database import Database
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.states import DatasetState
from trellis_api.jobs import service
from trellis_api.jobs.queue import admission
from trellis_contracts.states import JobState

DATASET = "ds_bbbbbbbbbbbb"


@pytest.fixture
def set_state(database: Database) -> Callable[[DatasetState], None]:
    """Lets the dataset that is imported be in a state."""

    def change(state: DatasetState) -> None:
        with database.write() as session:
            session.merge(Dataset(id=DATASET, name="of before", state=state))

    return change


def claim(database: Database) -> str | None:
    with database.write() as session:
        found = admission.claim_next(session, total_slots=8, max_exports=1)
    return found.job.id if found else None


@pytest.mark.parametrize("side", ["dataset_id", "validation_dataset_id"])
def test_a_job_waits_while_its_rows_are_imported_and_others_pass(
    database: Database,
    make_job: Callable[..., str],
    set_state: Callable[[DatasetState], None],
    side: str,
) -> None:
    set_state(DatasetState.CREATING)
    waiting = make_job(priority=5, gpus=8, **{side: DATASET})
    other = make_job(gpus=8)

    assert [claim(database), claim(database)] == [other, None]
    with database.write() as session:
        service.settle(session, job_id=other, attempt=1, state=JobState.SUCCEEDED)
    assert claim(database) is None
    set_state(DatasetState.READY)
    assert claim(database) == waiting


def test_a_job_whose_rows_could_not_be_imported_goes_on_to_say_so(
    database: Database, make_job: Callable[..., str], set_state: Callable[[DatasetState], None]
) -> None:
    set_state(DatasetState.FAILED)
    job = make_job(dataset_id=DATASET)

    assert claim(database) == job
