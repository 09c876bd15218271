"""/v1/fine_tuning/jobs with the official client: what a job comes to here, its life, and what is refused."""

import json
from typing import Any

import openai
import pytest
from fastapi.testclient import TestClient
from openai.types.fine_tuning import FineTuningJob
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.fine_tuning import repository as fine_tuning
from trellis_api.fine_tuning import service
from trellis_api.fine_tuning.translation import choose_epochs
from trellis_api.jobs import repository
from trellis_api.jobs import service as jobs
from trellis_api.jobs.events.service import publish
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.data_tasks import finish_data_tasks

from .conftest import CHECK, Upload, chats, pairs, platform_job, prompts


def test_a_supervised_job_is_a_job_with_a_recipe(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient
) -> None:
    training, validation = upload(chats()), upload(chats(10))

    made = official.fine_tuning.jobs.create(
        model=model.name,
        training_file=training.id,
        validation_file=validation.id,
        method={
            "type": "supervised",
            "supervised": {
                "hyperparameters": {"n_epochs": 2, "batch_size": 8, "learning_rate_multiplier": 0.5}
            },
        },
        suffix="sums",
        seed=7,
        metadata={"team": "a"},
    )

    assert (made.status, made.seed, made.metadata, made.model) == ("queued", 7, {"team": "a"}, model.name)
    assert made.fine_tuned_model is None
    found = platform_job(client, made)
    name = f"ft:{model.name.replace(' ', '-')}:sums:{made.id.removeprefix('ftjob-')}"
    assert (found["recipe"], found["seed"], found["export_as"]["name"]) == ("sft", 7, name)
    assert found["validation_dataset"] is not None
    wanted = {
        "epochs": 2,
        "total_steps": None,
        "batch_size": 8,
        "learning_rate": 0.5 * 2e-3,
        "save_every": 5,
        "validate_every": 5,
    }
    assert {name: found["params"][name] for name in wanted} == wanted
    assert made.method is not None
    assert made.method.supervised is not None
    assert made.method.supervised.hyperparameters is not None
    assert made.method.supervised.hyperparameters.n_epochs == 2


def test_auto_is_settled_by_the_number_of_examples(job: FineTuningJob, client: TestClient) -> None:
    found = platform_job(client, job)

    assert job.hyperparameters.n_epochs == found["params"]["epochs"] == 3
    assert job.hyperparameters.batch_size == found["params"]["batch_size"] == 32
    assert found["params"]["validation_rows"] == 0
    assert [choose_epochs(count) for count in (1, 10, 100, 20_000, 100_000)] == [25, 10, 3, 1, 1]


def test_a_registered_model_is_named_as_in_requests(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient
) -> None:
    client.post("/api/v1/registry", json={"name": "bot", "model": model.id})
    moved = client.put("/api/v1/registry/bot/aliases/production", json={"version": 1, "note": "first"})
    assert moved.status_code == 200, moved.text
    training = upload(chats()).id

    for name in ("bot:production", "bot:1"):
        made = official.fine_tuning.jobs.create(model=name, training_file=training)

        assert platform_job(client, made)["model"]["id"] == model.id


def test_the_older_place_of_hyperparameters_is_understood(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient
) -> None:
    made = official.fine_tuning.jobs.create(
        model=model.id, training_file=upload(chats()).id, hyperparameters={"n_epochs": 4}
    )

    assert platform_job(client, made)["params"]["epochs"] == 4


def test_a_dpo_job_learns_from_pairs_with_its_beta(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient
) -> None:
    made = official.fine_tuning.jobs.create(
        model=model.name,
        training_file=upload(pairs()).id,
        method={"type": "dpo", "dpo": {"hyperparameters": {"beta": 0.3}}},
    )

    found = platform_job(client, made)
    assert (found["recipe"], found["params"]["beta"]) == ("dpo", 0.3)


def test_a_reinforcement_job_scores_with_a_file_made_of_its_grader(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_api.rewards.resources.find_obstacle", lambda *_: None)
    hyperparameters: Any = {"compute_multiplier": 2, "eval_interval": 3, "eval_samples": 2}

    made = official.fine_tuning.jobs.create(
        model=model.name,
        training_file=upload(prompts()).id,
        validation_file=upload(prompts(10)).id,
        method={
            "type": "reinforcement",
            "reinforcement": {"grader": CHECK, "hyperparameters": hyperparameters},  # type: ignore[typeddict-item]
        },
    )

    found = platform_job(client, made)
    assert (found["recipe"], found["params"]["group_size"]) == ("grpo", 16)
    assert (found["params"]["validate_every"], found["params"]["validation_samples"]) == (3, 2)
    (term,) = found["params"]["rewards"]
    file = client.get(f"/api/v1/rewards/files/{term['options']['file']}").json()
    assert file["name"] == f"grader of {made.id}"
    names: dict[str, Any] = {}
    exec(file["code"], names)
    row = {"item": json.dumps({"reference_answer": "2"})}
    assert [names["score"]("1+1?", each, "2", row) for each in ("2", "3")] == [1.0, 0.0]


def test_the_method_of_an_answer_may_be_asked_for_again(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_api.rewards.resources.find_obstacle", lambda *_: None)
    file = upload(prompts()).id
    method: Any = {"type": "reinforcement", "reinforcement": {"grader": CHECK}}
    first = official.fine_tuning.jobs.create(model=model.name, training_file=file, method=method)
    again: Any = first.method

    second = official.fine_tuning.jobs.create(model=model.name, training_file=file, method=again)

    one, other = (platform_job(client, job)["params"] for job in (first, second))
    assert {name for name in one if one[name] != other[name]} == {"rewards"}


def test_a_job_waits_for_its_file_to_be_read(
    official: openai.OpenAI,
    upload: Upload,
    model: Model,
    client: TestClient,
    settings: Settings,
    database: Database,
) -> None:
    file = upload(chats(), is_read=False)
    made = official.fine_tuning.jobs.create(model=model.name, training_file=file.id)
    assert made.status == "validating_files"
    with pytest.raises(openai.ConflictError, match=made.id):
        official.files.delete(file.id)

    finish_data_tasks(settings, database)
    with database.write() as session:
        row = fine_tuning.find_job(session, job_id=made.id)
        assert row is not None
        assert service.begin(session, settings, row)

    assert official.fine_tuning.jobs.retrieve(made.id).status == "queued"
    assert platform_job(client, made)["state"] == "queued"


def test_a_file_that_cannot_be_read_is_named(official: openai.OpenAI, upload: Upload, model: Model) -> None:
    file = upload(b'{"text": 1}')

    with pytest.raises(openai.BadRequestError, match="Line 1 is no example") as refused:
        official.fine_tuning.jobs.create(model=model.name, training_file=file.id)

    assert (refused.value.param, refused.value.code) == ("training_file", "invalid_file")


@pytest.mark.parametrize(
    ("changes", "param", "said"),
    [
        ({"model": "gpt-4o"}, "model", "Model 'gpt-4o' not found"),
        ({"training_file": "file-abc"}, "training_file", "no file 'file-abc'"),
        ({"validation_file": "file-abc"}, "validation_file", "no file 'file-abc'"),
        (
            {"integrations": [{"type": "wandb", "wandb": {"project": "p"}}]},
            "integrations.0.type",
            "Set TRELLIS_WANDB_API_KEY",
        ),
        ({"integrations": [{"type": "mlflow"}]}, "integrations.0.type", "'mlflow' is not supported"),
        ({"integrations": [{"type": "wandb"}]}, "integrations.0.wandb", "a project is needed"),
        ({"suffix": "a:b"}, "suffix", "pattern"),
        ({"seed": -1}, "seed", "greater"),
        ({"extra_body": {"tier": "fast"}}, "tier", "not supported"),
        (
            {"method": {"type": "supervised", "supervised": {"hyperparameters": {"beta": 1}}}},
            "method.supervised.hyperparameters.beta",
            "not supported",
        ),
        (
            {"method": {"type": "supervised", "supervised": {"hyperparameters": {"batch_size": 100}}}},
            "method.supervised.hyperparameters.batch_size",
            "fewer than the batch size of 100",
        ),
        ({"method": {"type": "dpo"}}, "training_file", "dpo"),
        ({"method": {"type": "reinforcement"}}, "method", "grader is needed"),
        (
            {
                "method": {
                    "type": "reinforcement",
                    "reinforcement": {"grader": {**CHECK, "type": "label_model"}},
                }
            },
            "method.reinforcement.grader",
            "label_model",
        ),
        (
            {
                "method": {
                    "type": "reinforcement",
                    "reinforcement": {"grader": CHECK, "hyperparameters": {"reasoning_effort": "high"}},
                }
            },
            "method.reinforcement.hyperparameters.reasoning_effort",
            "default",
        ),
        (
            {
                "method": {
                    "type": "reinforcement",
                    "reinforcement": {"grader": CHECK, "hyperparameters": {"eval_samples": 2}},
                }
            },
            "method.reinforcement.hyperparameters.eval_samples",
            "needs a validation_file",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    official: openai.OpenAI, upload: Upload, model: Model, changes: dict[str, Any], param: str, said: str
) -> None:
    wanted: dict[str, Any] = {"model": model.name, "training_file": upload(chats()).id, **changes}

    with pytest.raises(openai.APIStatusError) as refused:
        official.fine_tuning.jobs.create(**wanted)

    assert refused.value.status_code in (400, 404)
    assert refused.value.param == param
    assert said in refused.value.message
    assert list(official.fine_tuning.jobs.list()) == []


def test_jobs_are_listed_page_by_page(official: openai.OpenAI, upload: Upload, model: Model) -> None:
    file = upload(chats())
    made = [official.fine_tuning.jobs.create(model=model.name, training_file=file.id).id for _ in range(3)]

    first = official.fine_tuning.jobs.list(limit=2)

    assert ([job.id for job in first.data], first.has_more) == (made[:0:-1], True)
    assert [job.id for job in official.fine_tuning.jobs.list(limit=1)] == made[::-1]


def test_jobs_are_found_by_their_metadata(
    official: openai.OpenAI, upload: Upload, model: Model, client: TestClient
) -> None:
    file = upload(chats())
    wanted = {"team": "a", "it's": "100%"}
    ids = [
        official.fine_tuning.jobs.create(model=model.name, training_file=file.id, metadata=metadata).id
        for metadata in (wanted, {"team": "b"}, None)
    ]

    def find(**metadata: str) -> list[str]:
        return [job.id for job in official.fine_tuning.jobs.list(metadata=metadata).data]

    assert find(team="a") == find(**wanted) == [ids[0]]
    assert find(team="c") == find(team="b", **{"it's": "100%"}) == []
    assert len(official.fine_tuning.jobs.list().data) == 3
    path = "/v1/fine_tuning/jobs"
    assert [job["id"] for job in client.get(path, params={"metadata": "null"}).json()["data"]] == [ids[2]]
    for query in ({"metadata": "x"}, {'metadata[a"b]': "x"}, {"metadata[]": "x"}, {"other[team]": "a"}):
        assert client.get(path, params=query).status_code == 400, query


def test_any_key_of_metadata_finds_its_job(official: openai.OpenAI, upload: Upload, model: Model) -> None:
    file = upload(chats())
    keys = ["a,b", "{", "}", " x ", "NULL", "0", "a.b", "$"]
    wanted, other = (
        official.fine_tuning.jobs.create(model=model.name, training_file=file.id, metadata=metadata).id
        for metadata in (dict.fromkeys(keys, "mine"), dict.fromkeys(["a", "b", "x", "null"], "mine"))
    )

    def find(key: str) -> list[str]:
        return [job.id for job in official.fine_tuning.jobs.list(metadata={key: "mine"}).data]

    assert {key: find(key) for key in keys} == {key: [wanted] for key in keys}
    assert find("x") == [other]


def test_a_cancelled_job_ends_for_good(official: openai.OpenAI, job: FineTuningJob) -> None:
    cancelled = official.fine_tuning.jobs.cancel(job.id)

    assert cancelled.status == "cancelled"
    assert cancelled.finished_at is not None
    for act in (
        official.fine_tuning.jobs.cancel,
        official.fine_tuning.jobs.pause,
        official.fine_tuning.jobs.resume,
    ):
        with pytest.raises(openai.ConflictError, match="cancelled"):
            act(job.id)


def test_a_paused_job_goes_on_where_it_stopped(
    official: openai.OpenAI, job: FineTuningJob, client: TestClient
) -> None:
    assert official.fine_tuning.jobs.pause(job.id).status == "paused"
    assert platform_job(client, job)["state"] == "stopped"

    assert official.fine_tuning.jobs.resume(job.id).status == "queued"
    assert platform_job(client, job)["attempt"] == 2


def test_events_tell_what_happened_newest_first(
    official: openai.OpenAI, job: FineTuningJob, trained: str
) -> None:
    events = list(official.fine_tuning.jobs.list_events(job.id, limit=2))

    told = [event.message for event in events]
    assert told[-2:] == [
        f"Validating training file: {job.training_file}",
        f"Created fine-tuning job: {job.id}",
    ]
    assert told[0] == f"Checkpoint created at step 2: {trained}:2"
    metrics = [event for event in events if event.type == "metrics"]
    assert [event.data for event in metrics] == [
        {"step": 2, "total_steps": 4, "train_loss": 0.5},
        {"step": 1, "total_steps": 4, "train_loss": 1.0},
    ]
    assert metrics[0].message == "Step 2/4: training loss=0.5"
    assert len({event.id for event in events}) == len(events)


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_events_tell_nothing_twice_and_no_steps_without_figures(
    official: openai.OpenAI, job: FineTuningJob, trained: str, database: Database, limit: int
) -> None:
    before = [event.message for event in official.fine_tuning.jobs.list_events(job.id, limit=limit)]
    with database.write() as session:
        run = repository.find_job(session, job_id=trained)
        assert run is not None
        said = {"state": run.state, "attempt": run.attempt, "reason": None}
        for kind, data in [
            ("metrics", {"step": 2, "values": {"timing_s/save_checkpoint": 0.6}, "non_finite": {}}),
            ("state", said),
            ("metrics", {"step": 3, "values": {"train/loss": 0.25}, "non_finite": {}}),
            ("state", said),
            ("metrics", {"step": 3, "values": {}, "non_finite": {}}),
        ]:
            publish(session, job=run, kind=kind, data=data)

    told = [event.message for event in official.fine_tuning.jobs.list_events(job.id, limit=limit)]

    assert told == ["Step 3/4: training loss=0.25", *before]


def test_checkpoints_have_names_that_requests_may_use(
    official: openai.OpenAI, job: FineTuningJob, trained: str
) -> None:
    (checkpoint,) = official.fine_tuning.jobs.checkpoints.list(job.id)

    assert checkpoint.fine_tuned_model_checkpoint == f"{trained}:2"
    assert (checkpoint.step_number, checkpoint.fine_tuning_job_id) == (2, job.id)
    assert checkpoint.metrics.train_loss == 0.5


def settle(database: Database, job_id: str, state: JobState, **why: Any) -> None:
    with database.write() as session:
        assert jobs.settle(session, job_id=job_id, attempt=1, state=state, **why)


def test_a_failed_run_is_a_failed_job_with_its_reason(
    official: openai.OpenAI, job: FineTuningJob, trained: str, database: Database
) -> None:
    settle(database, trained, JobState.FAILED, reason="The loss is no number.", cause="diverged")

    found = official.fine_tuning.jobs.retrieve(job.id)

    assert (found.status, found.finished_at is not None) == ("failed", True)
    assert found.error is not None
    assert (found.error.code, found.error.message) == ("diverged", "The loss is no number.")
    (newest, *_) = official.fine_tuning.jobs.list_events(job.id)
    assert (newest.level, newest.message) == ("error", "The job failed: The loss is no number.")


def test_the_figures_of_a_finished_job_are_a_file(
    official: openai.OpenAI, job: FineTuningJob, trained: str, database: Database
) -> None:
    assert official.fine_tuning.jobs.retrieve(job.id).result_files == []
    settle(database, trained, JobState.FAILED)

    (file_id,) = official.fine_tuning.jobs.retrieve(job.id).result_files

    content = official.files.content(file_id).text
    assert content == "step,train_loss\n1,1.0\n2,0.5\n"
    file = official.files.retrieve(file_id)
    assert (file.filename, file.purpose, file.bytes) == (
        "step_metrics.csv",
        "fine-tune-results",
        len(content),
    )
    with pytest.raises(openai.NotFoundError):
        official.files.content("file-aaaaaaaaaaaa-results")


def test_a_job_runs_until_its_model_is_there(
    official: openai.OpenAI, job: FineTuningJob, trained: str, database: Database
) -> None:
    settle(database, trained, JobState.SUCCEEDED)
    assert official.fine_tuning.jobs.retrieve(job.id).status == "running"
    with database.write() as session:
        row = repository.lock_job(session, job_id=trained)
        assert row is not None
        row.export_as = {**(row.export_as or {}), "job_id": None, "problem": "The disk is full."}
        session.add(row)

    found = official.fine_tuning.jobs.retrieve(job.id)

    assert found.status == "failed"
    assert found.error is not None
    assert found.error.message == "The disk is full."


def test_a_foreign_job_is_not_found(official: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="Fine-tuning job"):
        official.fine_tuning.jobs.retrieve("ftjob-abc")
