"""Launching over the API: what is accepted, and how each mistake is named."""

import json
import shutil
import statistics
import time
from collections import namedtuple
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_testing.datasets import add_dataset, add_version, sums


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    """A job that can run."""
    return {
        "name": "first light",
        "recipe": "grpo",
        "preset": "cpu-tiny",
        "model": model.id,
        "dataset": dataset.id,
        "tags": ["demo", "arithmetic"],
        "priority": 3,
    }


def test_a_valid_job_is_queued(client: TestClient, body: dict[str, Any], model: Model) -> None:
    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 201, response.text
    job = response.json()
    assert job["state"] == "queued"
    assert job["queue_position"] == 1
    assert job["tags"] == ["arithmetic", "demo"]
    assert job["model"] == {"id": model.id, "name": model.name}
    assert job["headline_metrics"]
    assert (job["can_stop"], job["can_resume"], job["can_delete"], job["can_clone"]) == (
        True,
        False,
        False,
        True,
    )
    assert client.get(f"/api/v1/jobs/{job['id']}").json() == job


def test_the_preview_is_what_the_launch_composes(client: TestClient, body: dict[str, Any]) -> None:
    response = client.post("/api/v1/jobs/preview", json=body)

    assert response.status_code == 200, response.text
    preview = response.json()
    assert preview["errors"] == []
    assert preview["engine"] == "verl-ppo"
    assert preview["config"]["algorithm"]["adv_estimator"] == "grpo"
    assert "verl" in preview["command"]
    assert client.get("/api/v1/jobs").json()["items"] == []


def test_an_unknown_engine_key_is_named_with_the_nearest_valid_one(
    client: TestClient, body: dict[str, Any]
) -> None:
    body["overrides"] = {"actor_rollout_ref.actor.clip_ration": 0.2}

    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 422
    error = response.json()
    assert error["error"] == "invalid_configuration"
    assert "actor_rollout_ref.actor.clip_ration" in str(error["details"])
    assert any(issue["suggestion"] == "actor_rollout_ref.actor.clip_ratio" for issue in error["details"])


def test_the_preview_lists_mistakes_instead_of_refusing(client: TestClient, body: dict[str, Any]) -> None:
    body["params"] = {"no_such_parameter": 1}
    body["resources"] = {"gpus": 4096}

    response = client.post("/api/v1/jobs/preview", json=body)

    assert response.status_code == 200, response.text
    fields = {issue["field"] for issue in response.json()["errors"]}
    assert "params.no_such_parameter" in fields
    assert "resources.gpus" in fields


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"recipe": "grop"}, "invalid_configuration"),
        ({"params": {"no_such_parameter": 1}}, "invalid_configuration"),
        ({"model": "mdl_zzzzzzzzzzzz"}, "unknown_model"),
        ({"dataset": "ds_zzzzzzzzzzzz"}, "unknown_dataset"),
        ({"validation_dataset": "ds_zzzzzzzzzzzz"}, "unknown_dataset"),
        ({"resources": {"gpus": 5}}, "too_many_gpus"),
        ({"resources": {"gpus": 0}}, "invalid_request"),
        ({"name": "   "}, "invalid_request"),
        ({"surprise": 1}, "invalid_request"),
        ({"tags": [""]}, "invalid_request"),
    ],
)
def test_a_mistake_has_a_code(
    client: TestClient, body: dict[str, Any], change: dict[str, Any], code: str
) -> None:
    response = client.post("/api/v1/jobs", json={**body, **change})

    assert response.status_code == 422
    assert response.json()["error"] == code
    assert response.json()["details"]


def test_a_dataset_that_the_recipe_cannot_learn_from_is_refused(
    client: TestClient, body: dict[str, Any], database: Database, settings: Settings, dataset: Dataset
) -> None:
    with database.write() as session:
        add_version(session, settings, dataset.id, [{"title": "One"}])

    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 422
    assert response.json()["error"] == "unsuitable_dataset"
    assert dataset.name in response.json()["message"]


def test_a_job_reads_the_version_that_was_there_when_it_was_asked_for(
    client: TestClient, body: dict[str, Any], database: Database, settings: Settings, dataset: Dataset
) -> None:
    first = client.post("/api/v1/jobs", json=body).json()
    with database.write() as session:
        add_version(session, settings, dataset.id, {"train": sums(600), "test": sums(64, 600)})

    second = client.post("/api/v1/jobs", json={**body, "validation_split": "test"}).json()
    named = {**body, "dataset_version": first["dataset_version"][:8]}
    third = client.post("/api/v1/jobs", json=named).json()
    copy = client.post(f"/api/v1/jobs/{second['id']}/clone", json={}).json()

    tip = client.get(f"/api/v1/datasets/{dataset.id}").json()["head"]
    assert (first["dataset_version"], first["dataset_split"]) == (dataset.head, "train")
    assert (first["validation_dataset"], first["validation_split"]) == (None, None)
    assert third["dataset_version"] == dataset.head != tip
    for job in (second, copy):
        assert (job["dataset_version"], job["dataset_split"]) == (tip, "train")
        assert job["validation_dataset"]["id"] == dataset.id
        assert (job["validation_version"], job["validation_split"]) == (tip, "test")


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"dataset_version": "no-such"}, "version_not_found", "dataset_version"),
        ({"dataset_version": "0" * 64}, "version_not_found", "dataset_version"),
        ({"dataset_version": "../../main"}, "version_not_found", "dataset_version"),
        ({"dataset_split": "test"}, "split_not_found", "dataset_split"),
        ({"validation_split": "test"}, "split_not_found", "validation_split"),
    ],
)
def test_a_version_or_split_that_is_not_there_is_refused(
    client: TestClient, body: dict[str, Any], changes: dict[str, Any], code: str, field: str
) -> None:
    for path in ("/api/v1/jobs", "/api/v1/jobs/preview"):
        response = client.post(path, json={**body, **changes})

        assert (response.status_code, response.json()["error"]) == (422, "unknown_version")
        (issue,) = response.json()["details"]
        assert (issue["code"], issue["field"]) == (code, field)


def test_a_validation_version_of_nothing_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    response = client.post("/api/v1/jobs", json={**body, "validation_version": "main"})

    assert (response.status_code, response.json()["error"]) == (422, "invalid_request")


def test_a_dataset_without_rows_is_refused(
    client: TestClient, body: dict[str, Any], database: Database
) -> None:
    with database.write() as session:
        session.add(Dataset(id="ds_aaaaaaaaaaaa", name="empty"))

    response = client.post("/api/v1/jobs", json={**body, "dataset": "ds_aaaaaaaaaaaa"})

    assert (response.status_code, response.json()["error"]) == (422, "unknown_version")
    assert response.json()["details"][0]["code"] == "dataset_not_ready"


def test_a_model_whose_weights_are_not_here_yet_is_refused(
    client: TestClient, body: dict[str, Any], database: Database, model: Model
) -> None:
    with database.write() as session:
        model.path, model.state = None, "fetching"
        session.add(model)

    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 422
    assert response.json()["details"][0]["code"] == "model_not_ready"


def test_a_full_disk_is_said_before_the_launch(
    client: TestClient, body: dict[str, Any], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(100, 99, 1))
    monkeypatch.setattr(settings, "min_free_disk_bytes", 2)

    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 507
    assert response.json()["error"] == "storage_full"
    assert response.json()["details"] == {"free_bytes": 1, "needed_bytes": 2}
    assert client.get("/api/v1/jobs").json()["items"] == []


def test_a_data_root_that_cannot_be_written_is_said_before_the_launch(
    client: TestClient, body: dict[str, Any], settings: Settings
) -> None:
    shutil.rmtree(settings.data_root)

    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 503
    assert response.json()["error"] == "storage_unwritable"


def test_a_broker_that_is_away_neither_fails_nor_delays_the_launch(
    client: TestClient, body: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    from trellis_api.core.tasks import TaskQueue

    # Port 9 is the discard service: nothing listens there.
    client.app.state.tasks = TaskQueue(Settings(redis_url="redis://127.0.0.1:9/0"))  # type: ignore[attr-defined]

    response = client.post("/api/v1/jobs", json=body)

    assert response.status_code == 201
    assert "the broker did not take trellis.jobs.launch_queued" in caplog.text


def test_a_launch_answers_quickly(client: TestClient, body: dict[str, Any]) -> None:
    client.post("/api/v1/jobs", json=body)  # the first one reads the engine's files
    seconds = []
    for _ in range(9):
        begin = time.process_time()
        client.post("/api/v1/jobs", json=body)
        seconds.append(time.process_time() - begin)

    # The bar is 50 ms (measured by the benchmark). Processor time of client and server, which share this
    # process: others that keep the machine busy do not count.
    assert statistics.median(seconds) < 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a\0b"},
        {"tags": ["a\0b"]},
        {"params": {"a\0b": 1}},
        {"overrides": {"trainer.project_name": "a\0b"}},
        {"overrides": {"trainer.project_name": "\ud800"}},
    ],
)
def test_what_no_database_keeps_is_malformed(
    client: TestClient, body: dict[str, Any], change: dict[str, Any]
) -> None:
    response = client.post("/api/v1/jobs", content=json.dumps({**body, **change}))

    assert response.status_code == 422, response.text
    assert response.json()["error"] == "invalid_request"


@pytest.mark.parametrize("name", ["recipe", "tag", "text"])
def test_a_filter_that_matches_nothing_storable_is_malformed(client: TestClient, name: str) -> None:
    assert client.get("/api/v1/jobs", params={name: "a\0b"}).status_code == 422


@pytest.mark.parametrize(
    "change",
    [
        {"params": {"run_name": "hf_abcdefghijklmnopqrstuvwxyz"}},
        {"overrides": {"reward.sandbox_fusion.url": "https://me:hunter2@sandbox/run"}},
        {"overrides": {"a": [{"b": "trellis_admin_0123456789012345678901234567890"}]}},
    ],
)
def test_a_secret_among_the_settings_is_refused_unseen(
    client: TestClient, body: dict[str, Any], change: dict[str, Any]
) -> None:
    response = client.post("/api/v1/jobs", json={**body, **change})

    assert response.status_code == 422
    assert "environment" in response.json()["message"]
    assert "hunter2" not in response.text


@pytest.mark.parametrize(
    ("params", "rewards"),
    [
        (
            {"reward": "math", "format_weight": 0.2, "length_penalty": 0.1, "length_penalty_from": 50},
            [("math", 0.8, {}), ("format", 0.2, {}), ("length", 0.1, {"free_length": 50})],
        ),
        ({"reward": "math", "format_weight": 0.9}, [("math", 0.1, {}), ("format", 0.9, {})]),
        ({"reward": "regex", "reward_pattern": "(.+)"}, [("regex", 1.0, {"pattern": "(.+)"})]),
        ({"rewards": [{"name": "exact", "weight": 2}]}, [("exact", 2.0, {})]),
        ({"rewards": [{"name": "exact"}, {"weight": "none"}]}, [("exact", 1.0, {})]),
    ],
)
def test_the_preview_says_what_a_response_earns(
    client: TestClient,
    body: dict[str, Any],
    params: dict[str, Any],
    rewards: list[tuple[str, float, dict[str, Any]]],
) -> None:
    composed = client.post("/api/v1/jobs/preview", json={**body, "params": params}).json()

    found = [(each["name"], each["weight"]) for each in composed["rewards"]]
    assert found == [(name, weight) for name, weight, _ in rewards]
    for given, (_, _, options) in zip(composed["rewards"], rewards, strict=True):
        assert options.items() <= given["options"].items()


@pytest.mark.parametrize(
    ("change", "probes"),
    [
        ({"params": {"reward": "exact"}}, {"scored": ["exact"], "left_out": [], "reason": None}),
        (
            {"params": {"rewards": [{"name": "code"}, {"name": "format", "weight": 0.1}]}},
            {"scored": ["format"], "left_out": ["code"], "reason": None},
        ),
        (
            {"params": {"rewards": [{"name": "code"}]}},
            {"scored": [], "left_out": ["code"], "reason": "nothing_to_earn"},
        ),
        ({"recipe": "sft"}, None),
    ],
)
def test_a_job_tells_how_its_rewards_score_tricks(
    client: TestClient, body: dict[str, Any], change: dict[str, Any], probes: dict[str, Any] | None
) -> None:
    submitted = client.post("/api/v1/jobs", json={**body, **change})
    assert submitted.status_code == 201, submitted.text

    summary = client.get(f"/api/v1/jobs/{submitted.json()['id']}/rollout-summary").json()

    assert summary["probes"] == probes


def test_a_recipe_without_rewards_previews_none(client: TestClient, body: dict[str, Any]) -> None:
    composed = client.post("/api/v1/jobs/preview", json={**body, "recipe": "sft"}).json()

    assert composed["errors"] == []
    assert composed["rewards"] == []


STRICT = (
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}"
    "{{ message['content'] }}{% endfor %}"
)
PAIR = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("recipe", "good", "bad"),
    [
        ("sft", {"messages": PAIR}, {"messages": [SYSTEM, *PAIR]}),
        (
            "dpo",
            {"prompt": PAIR[:1], "chosen": PAIR[1:], "rejected": PAIR[1:]},
            {"prompt": [SYSTEM, *PAIR[:1]], "chosen": PAIR[1:], "rejected": PAIR[1:]},
        ),
    ],
)
def test_a_row_that_the_models_chat_template_refuses_is_named_before_the_launch(
    client: TestClient,
    body: dict[str, Any],
    model: Model,
    settings: Settings,
    database: Database,
    recipe: str,
    good: dict[str, Any],
    bad: dict[str, Any],
) -> None:
    folder = settings.data_root / str(model.path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text(STRICT)
    with database.write() as session:
        clean, mixed = (
            add_dataset(session, settings, rows).id for rows in ([good] * 80, [good, good, bad] + [good] * 77)
        )

    def launch(dataset: str) -> Any:
        return client.post("/api/v1/jobs", json={**body, "recipe": recipe, "dataset": dataset})

    accepted, refused = launch(clean), launch(mixed)
    (folder / "chat_template.jinja").write_text(
        "{% for message in messages %}{{ message.content }}{% endfor %}"
    )

    assert accepted.status_code == 201, accepted.text
    assert (refused.status_code, refused.json()["error"]) == (422, "row_refused_by_template")
    assert "refuses row 3 of" in refused.json()["message"]
    assert "roles must alternate user/assistant" in refused.json()["message"]
    assert refused.json()["details"][0]["row"] == 3
    assert launch(mixed).status_code == 201, "another template takes it"


def test_a_model_whose_templates_cannot_be_read_any_more_is_refused(
    client: TestClient, body: dict[str, Any], model: Model, settings: Settings
) -> None:
    folder = settings.data_root / str(model.path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer_config.json").write_text("{")
    asked = {**body, "recipe": "sft"}  # whose rows are rendered before the launch

    refused = client.post("/api/v1/jobs", json=asked)
    previewed = client.post("/api/v1/jobs/preview", json=asked)

    assert (refused.status_code, refused.json()["error"]) == (422, "model_folder_invalid")
    assert previewed.status_code == 200, previewed.text
    assert "model_folder_invalid" in [each["code"] for each in previewed.json()["errors"]]


def test_a_model_whose_chat_template_has_become_endless_is_refused(
    client: TestClient, body: dict[str, Any], model: Model, settings: Settings
) -> None:
    folder = settings.data_root / str(model.path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text("{{ ('x' * 9999999999) | length }}")

    refused = client.post("/api/v1/jobs", json=body)
    previewed = client.post("/api/v1/jobs/preview", json=body).json()
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    accepted = client.post("/api/v1/jobs", json=body)

    assert (refused.status_code, refused.json()["error"]) == (422, "chat_template_runaway")
    assert refused.json()["details"][0]["field"] == "model"
    assert ("model", "chat_template_runaway") in [
        (each["field"], each["code"]) for each in previewed["errors"]
    ]
    assert accepted.status_code == 201, accepted.text
