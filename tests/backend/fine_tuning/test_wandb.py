"""Fine-tuning jobs whose metrics go to Weights & Biases: their ``integrations`` are a job's ``report_to``."""

from typing import Any

import openai
import pytest
from pydantic import SecretStr
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.fine_tuning import repository as fine_tuning
from trellis_api.fine_tuning import service
from trellis_api.jobs.models import Job
from trellis_api.jobs.reporting import requests
from trellis_api.jobs.reporting.models import JobReport
from trellis_api.models.models import Model
from trellis_testing.data_tasks import finish_data_tasks

from .conftest import Upload, chats


@pytest.fixture
def has_wandb(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.wandb_api_key = SecretStr("the key of the account")
    monkeypatch.setattr(requests, "find_spec", lambda _: object())


@pytest.mark.usefixtures("has_wandb")
def test_an_integration_with_wandb_is_kept_and_shown_without_its_key(
    official: openai.OpenAI,
    upload: Upload,
    model: Model,
    settings: Settings,
    database: Database,
) -> None:
    wanted: Any = [{"type": "wandb", "wandb": {"project": "sums", "tags": ["a"]}}]

    made = official.fine_tuning.jobs.create(
        model=model.name, training_file=upload(chats()).id, integrations=wanted
    )

    assert made.integrations is not None
    assert [(each.type, each.wandb.project, each.wandb.tags) for each in made.integrations] == [
        ("wandb", "sums", ["a"])
    ]
    with database.read() as session:
        row = fine_tuning.find_job(session, job_id=made.id)
        assert row is not None
        report = session.get(JobReport, row.job_id)
        assert report is not None
        assert (report.settings, report.run_id) == ({"wandb": wanted[0]["wandb"]}, row.job_id)
        assert "the key" not in str([row.model_dump(), report.model_dump(), session.get(Job, row.job_id)])


@pytest.mark.usefixtures("has_wandb")
def test_a_job_begins_where_only_the_api_has_the_key(
    official: openai.OpenAI,
    upload: Upload,
    model: Model,
    settings: Settings,
    database: Database,
) -> None:
    wanted: Any = [{"type": "wandb", "wandb": {"project": "sums"}}]
    file = upload(chats(), is_read=False)
    made = official.fine_tuning.jobs.create(model=model.name, training_file=file.id, integrations=wanted)
    finish_data_tasks(settings, database)

    settings.wandb_api_key = None  # where the worker runs that begins it
    with database.write() as session:
        row = fine_tuning.find_job(session, job_id=made.id)
        assert row is not None
        assert service.begin(session, settings, row)
        assert session.get(JobReport, row.job_id) is not None
