"""Fine-tuning jobs whose files are read after they were asked for: begun once, or failed with the reason."""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_api.core.ids import new_id
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.states import DatasetState
from trellis_api.fine_tuning import repository
from trellis_api.fine_tuning.models import FineTuningJob, OpenAiFile
from trellis_api.jobs.repository import find_job
from trellis_testing.datasets import add_dataset
from trellis_workers.fine_tuning.advance import advance_fine_tuning

from .conftest import Installation

ROWS = [
    {"messages": [{"role": "user", "content": f"{n}+1?"}, {"role": "assistant", "content": f"{n + 1}"}]}
    for n in range(40)
]


@pytest.fixture
def installation(install: Callable[..., Installation]) -> Installation:
    return install()


def add_waiting(installation: Installation, *, state: DatasetState, **changes: Any) -> str:
    """A fine-tuning job whose file is in this state."""
    with installation.write() as session:
        dataset = add_dataset(session, installation.settings, ROWS)
        file = OpenAiFile(
            id="file-aaaaaaaaaaaa",
            upload_id="up_aaaaaaaaaaaa",
            dataset_id=dataset.id,
            filename="a.jsonl",
            purpose="fine-tune",
            size_bytes=1,
        )
        if state != DatasetState.READY:
            task = DataTask(
                id=new_id("dt"),
                kind="import",
                state="failed",
                dataset_id=dataset.id,
                request={},
                reason="Line 3!",
            )
            session.add(task)
            dataset.task_id = task.id
        dataset.state = state
        session.add(dataset)
        session.add(file)
        row = FineTuningJob(
            id=new_id("ftjob").replace("_", "-"),
            request={"model": "tiny", "training_file": file.id},
            model_id="mdl_aaaaaaaaaaaa",
            tuned_name="ft:tiny::a",
            seed=1,
            **changes,
        )
        session.add(row)
        return row.id


def read(installation: Installation, job_id: str) -> FineTuningJob:
    with installation.read() as session:
        row = repository.find_job(session, job_id=job_id)
    assert row is not None
    return row


def test_a_job_begins_once_when_its_file_is_read(installation: Installation) -> None:
    job_id = add_waiting(installation, state=DatasetState.READY)

    assert advance_fine_tuning()
    assert not advance_fine_tuning()

    row = read(installation, job_id)
    with installation.read() as session:
        job = find_job(session, job_id=str(row.job_id))
    assert job is not None
    assert (job.recipe, job.state, job.export_as) == (
        "sft",
        "queued",
        {"name": "ft:tiny::a", "best_by": None, "mode": None},
    )


def test_a_job_waits_while_its_file_is_read_or_it_rests(installation: Installation) -> None:
    job_id = add_waiting(installation, state=DatasetState.CREATING)

    assert not advance_fine_tuning()
    with installation.write() as session:
        row = repository.lock_job(session, job_id=job_id)
        assert row is not None
        row.paused_at = row.created_at
        session.get(Dataset, session.get(OpenAiFile, "file-aaaaaaaaaaaa").dataset_id).state = "ready"
    assert not advance_fine_tuning()

    assert read(installation, job_id).job_id is None


def test_a_file_that_cannot_be_read_fails_the_job_with_the_line(installation: Installation) -> None:
    job_id = add_waiting(installation, state=DatasetState.FAILED)

    assert not advance_fine_tuning()

    row = read(installation, job_id)
    assert row.error == {
        "code": "invalid_file",
        "message": "training_file: Line 3!",
        "param": "training_file",
    }
    assert row.finished_at is not None


def test_a_deleted_model_fails_the_job(installation: Installation) -> None:
    job_id = add_waiting(installation, state=DatasetState.READY)
    with installation.write() as session:
        row = repository.lock_job(session, job_id=job_id)
        assert row is not None
        row.model_id = "mdl_bbbbbbbbbbbb"
        session.add(row)

    assert not advance_fine_tuning()

    assert (read(installation, job_id).error or {})["code"] == "model_not_found"
