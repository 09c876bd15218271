"""Figures of a job with a validation file: in its events, at its checkpoints and in its result file."""

import openai
import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.fine_tuning import figures
from trellis_api.jobs import service as jobs
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

from .conftest import CHECK, Upload, platform_job, prompts, report


@pytest.mark.parametrize("answers", [1, 4])
def test_the_mean_reward_of_the_validation_is_the_mean_of_its_scores(
    official: openai.OpenAI,
    upload: Upload,
    model: Model,
    client: TestClient,
    database: Database,
    answers: int,
) -> None:
    job = official.fine_tuning.jobs.create(
        model=model.name,
        training_file=upload(prompts()).id,
        validation_file=upload(prompts(10)).id,
        method={"type": "reinforcement", "reinforcement": {"grader": CHECK}},
    )
    validated = {
        f"val-core/dataset/acc/mean@{answers}": 0.0,
        f"val-aux/dataset/reward/mean@{answers}": 0.5,
        f"val-aux/dataset/score/mean@{answers}": 0.62,
        "val-aux/num_turns/mean": 2.0,
    }
    report(
        client,
        database,
        str(platform_job(client, job)["id"]),
        [{"critic/score/mean": 0.25}, {"critic/score/mean": 0.5, **validated}],
    )

    events = official.fine_tuning.jobs.list_events(job.id)
    (checkpoint,) = official.fine_tuning.jobs.checkpoints.list(job.id)
    table = official.files.content(f"file-{job.id.removeprefix('ftjob-')}-results").text

    newest = next(event for event in events if event.type == "metrics")
    assert newest.message == "Step 2/4: training mean reward=0.5, validation mean reward=0.62"
    assert checkpoint.metrics.model_dump()["valid_mean_reward"] == 0.62
    assert table == "step,train_mean_reward,valid_mean_reward\n1,0.25,\n2,0.5,0.62\n"


def test_an_engine_that_names_no_score_has_a_reward() -> None:
    values = {"val-core/dataset/reward/mean@2": 0.5, "val-core/dataset/acc/mean@2": 1.0}

    assert figures.rename(values) == {"valid_mean_reward": 0.5}
    assert figures.choose_keys(values) == ["val-core/dataset/reward/mean@2"]


def test_the_result_files_of_jobs_are_listed_page_by_page(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient, database: Database
) -> None:
    training = upload(prompts()).id
    expected = []
    for _ in range(3):
        job = official.fine_tuning.jobs.create(
            model=model.name,
            training_file=training,
            method={"type": "reinforcement", "reinforcement": {"grader": CHECK}},
        )
        expected.append(f"file-{job.id.removeprefix('ftjob-')}-results")
        job_id = str(platform_job(client, job)["id"])
        report(client, database, job_id, [{"critic/score/mean": 0.5}])
        if len(expected) < 3:  # the last one is still training
            with database.write() as session:
                assert jobs.settle(session, job_id=job_id, attempt=1, state=JobState.FAILED)

    newest = list(official.files.list(purpose="fine-tune-results", limit=1))
    oldest = list(official.files.list(purpose="fine-tune-results", order="asc"))

    assert [file.id for file in newest] == expected[1::-1]
    assert [file.id for file in oldest] == expected[:2]
    assert newest[0] == official.files.retrieve(newest[0].id)
    assert [file.id for file in official.files.list()] == [training]
    with pytest.raises(openai.NotFoundError):
        official.files.list(purpose="fine-tune-results", after=training)
