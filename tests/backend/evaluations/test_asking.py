"""What can be asked of an evaluation, and what is refused before anything is queued."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import service
from trellis_api.models.models import Model
from trellis_api.rewards.availability import record_probe
from trellis_contracts.states import JobState

Ask = Callable[..., Any]


def codes(response: Any) -> set[str]:
    assert response.status_code == 422, response.text
    return {issue["code"] for issue in response.json()["details"]}


def custom(dataset: Dataset, **changes: Any) -> dict[str, Any]:
    return {"benchmark": "custom", "dataset": dataset.id, "scorer": {"kind": "exact"}, **changes}


def test_an_evaluation_is_a_job_that_takes_no_slot_on_a_cpu(
    client: TestClient, ask: Ask, model: Model
) -> None:
    response = ask({"benchmark": "gsm8k", "limit": 5}, {"benchmark": "gsm8k", "shots": 0}, seed=7)

    assert response.status_code == 201, response.text
    (made,) = response.json()["items"]
    assert [order["label"] for order in made["benchmarks"]] == ["gsm8k", "gsm8k-2"]
    assert (made["state"], made["seed"], made["trigger"]) == ("queued", 7, "person")
    assert made["target"]["model"] == {"id": model.id, "name": model.name}
    assert made["pending_benchmarks"] == ["gsm8k"]
    assert (made["can_cancel"], made["can_retry"], made["can_delete"]) == (True, False, False)
    job = client.get(f"/api/v1/jobs/{made['job_id']}").json()
    assert (job["kind"], job["resources"]["gpus"], job["evaluation_id"]) == ("evaluate", 0, made["id"])
    assert (job["can_delete"], job["can_clone"]) == (False, False)
    read = client.get(f"/api/v1/evaluations/{made['id']}").json()
    assert read == made


def test_every_target_has_an_evaluation_of_its_own(
    client: TestClient, ask: Ask, model: Model, checkpoint: dict[str, Any]
) -> None:
    targets = [{"kind": "model", "model": model.id}, checkpoint]

    made = ask(targets=targets, name="both").json()["items"]

    assert [each["target"]["kind"] for each in made] == ["model", "checkpoint"]
    assert made[1]["target"]["job"]["id"] == checkpoint["job"]
    assert made[1]["target"]["step"] == 3
    of_job = client.get("/api/v1/evaluations", params={"job": checkpoint["job"]}).json()["items"]
    assert [each["id"] for each in of_job] == [made[1]["id"]]
    of_model = client.get("/api/v1/evaluations", params={"model": model.id}).json()["items"]
    assert [each["id"] for each in of_model] == [made[0]["id"]]


def test_a_chat_template_that_has_become_endless_is_refused_before_anything_is_queued(
    client: TestClient, ask: Ask, model: Model, checkpoint: dict[str, Any], settings: Settings
) -> None:
    folder = settings.data_root / str(model.path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text("{{ ('x' * 9999999999) | length }}")

    refused = [ask(path=path, targets=[checkpoint]) for path in ("/estimate", "")]
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    accepted = ask(targets=[checkpoint])

    for each in refused:
        assert (each.status_code, each.json()["error"]) == (422, "chat_template_runaway")
        assert each.json()["details"][0]["field"] == "targets.0"
    assert accepted.status_code == 201, accepted.text


def test_nothing_is_queued_where_one_target_is_wrong(
    client: TestClient, ask: Ask, model: Model, checkpoint: dict[str, Any]
) -> None:
    targets = [
        {"kind": "model", "model": model.id},
        {"kind": "model", "model": "mdl_aaaaaaaaaaaa"},
        {**checkpoint, "step": 4},
        {**checkpoint, "job": "job_aaaaaaaaaaaa"},
    ]

    refused = ask(targets=targets)

    assert refused.json()["error"] == "target_unusable"
    found = [(issue["field"], issue["code"]) for issue in refused.json()["details"]]
    assert found == [
        ("targets.1", "model_not_ready"), ("targets.2", "checkpoint_not_found"),
        ("targets.3", "job_not_found"),
    ]  # fmt: skip
    assert client.get("/api/v1/evaluations").json()["items"] == []
    assert client.get("/api/v1/benchmarks/gsm8k").json()["state"] == "absent"


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"path": None, "state": "pending"}, "model_not_ready"),
        ({"lineage": {"form": "adapter"}}, "model_is_adapter"),
        ({"architecture": "QwenForSequenceClassification"}, "target_unusable"),
    ],
)
def test_a_model_that_cannot_write_is_refused(
    database: Database, ask: Ask, model: Model, facts: dict[str, Any], code: str
) -> None:
    with database.write() as session:
        model.sqlmodel_update(facts)
        session.add(model)

    assert codes(ask()) == {code}


@pytest.mark.parametrize(
    ("order", "engine", "code"),
    [
        ({"chat": "always"}, {}, "chat_template_missing"),
        ({"system": "Be brief."}, {}, "chat_template_missing"),
        ({"system": "Be brief.", "chat": "never"}, {}, "system_without_chat"),
        ({"decoding": {"max_tokens": 4096}}, {}, "window_too_short"),
        ({"decoding": {"max_tokens": 64}}, {"max_model_len": 64}, "window_too_short"),
        ({}, {"max_model_len": 8192}, "window_too_short"),
        ({}, {"tensor_parallel": 2}, "too_many_gpus"),
    ],
)
def test_what_the_model_cannot_do_is_told_at_once(
    database: Database, ask: Ask, model: Model, order: dict[str, Any], engine: dict[str, Any], code: str
) -> None:
    with database.write() as session:
        model.sqlmodel_update({"has_chat_template": False, "context_length": 4096})
        session.add(model)

    assert code in codes(ask({"benchmark": "gsm8k", **order}, engine=engine))


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({"benchmark": "mmlu", "subjects": ["astronomy", "gardening"]}, "unknown_subject"),
        ({"benchmark": "mmlu", "subjects": []}, "nothing_chosen"),
        ({"benchmark": "math", "types": ["Algebra", "Topology"]}, "unknown_type"),
    ],
)
def test_names_that_a_benchmark_has_not_are_told(ask: Ask, order: dict[str, Any], code: str) -> None:
    assert codes(ask(order)) == {code}


def test_code_is_not_run_without_a_sandbox(database: Database, ask: Ask) -> None:
    with database.write() as session:
        record_probe(session, hostname="worker", problem="bubblewrap is not installed")

    refused = ask({"benchmark": "humaneval"})

    assert codes(refused) == {"sandbox_missing"}
    assert "bubblewrap" in refused.json()["message"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"columns": {"prompt": "asked"}}, "unknown_column"),
        ({"group_column": "level"}, "unknown_column"),
        ({"template": "{question} in {tongue}"}, "unknown_column"),
        ({"template": "What is it?"}, "bad_template"),
        ({"version": "release-1"}, "version_not_found"),
        ({"split": "exam"}, "split_not_found"),
        ({"scorer": {"kind": "regex", "pattern": "(["}}, "bad_pattern"),
        ({"scorer": {"kind": "regex", "pattern": "a{99999999999999}"}}, "bad_pattern"),
        ({"scorer": {"kind": "json", "schema_text": '{"type": 3}'}}, "bad_schema"),
        ({"scorer": {"kind": "json", "schema_text": '{"pattern": "a{99999999999999}"}'}}, "bad_schema"),
        ({"scorer": {"kind": "json", "equals_answer": False}}, "nothing_checked"),
        ({"scorer": {"kind": "choice", "choices_column": "options"}}, "unknown_column"),
        ({"scorer": {"kind": "judge", "judge": "nobody", "rubric": "Is it so?"}}, "unknown_judge"),
        ({"scorer": {"kind": "judge", "judge": "nobody"}}, "rubric_missing"),
        ({"scorer": {"kind": "file", "file": "rwf_aaaaaaaaaaaa"}}, "unknown_reward_file"),
    ],
)
def test_what_is_wrong_with_a_benchmark_of_ones_own_is_told(
    ask: Ask, dataset: Dataset, changes: dict[str, Any], code: str
) -> None:
    assert code in codes(ask(custom(dataset, **changes)))


def test_a_benchmark_of_ones_own_names_what_it_reads(ask: Ask, dataset: Dataset) -> None:
    template = r"{question} Write \boxed{...} like \frac{1}{2}."

    plain = ask(custom(dataset)).json()["items"][0]["benchmarks"][0]
    templated = ask(custom(dataset, template=template))

    assert (plain["version"], plain["split"]) == (dataset.head, "train")
    assert plain["columns"] == {"prompt": "question", "answer": "answer"}
    assert templated.status_code == 201, templated.text


def test_what_an_evaluation_reads_stays(client: TestClient, ask: Ask, model: Model, dataset: Dataset) -> None:
    code = "def score(prompt, response, answer, row):\n    return 1.0\n"
    file = client.post("/api/v1/rewards/files", json={"name": "own", "code": code}).json()
    scored = custom(dataset, scorer={"kind": "file", "file": file["id"]})
    made = ask(scored).json()["items"][0]
    paths = [f"/models/{model.id}", f"/datasets/{dataset.id}", f"/rewards/files/{file['id']}"]

    while_it_waits = [client.delete(f"/api/v1{path}").status_code for path in paths]
    client.post(f"/api/v1/evaluations/{made['id']}/cancel")
    afterwards = [client.delete(f"/api/v1{path}").status_code for path in reversed(paths)]

    assert while_it_waits == [409, 409, 409]
    assert afterwards == [204, 204, 204]
    assert client.get(f"/api/v1/evaluations/{made['id']}").json()["target"]["name"] == model.name


def test_an_evaluation_on_gpus_takes_slots(
    database: Database, settings: Settings, ask: Ask, client: TestClient
) -> None:
    settings.platform = "cuda"

    made = ask(engine={"tensor_parallel": 2}).json()["items"][0]
    too_many = ask(engine={"tensor_parallel": 5})

    with database.read() as session:
        job = service.get_job(session, job_id=made["job_id"])
    assert (job.gpus, job.state) == (2, JobState.QUEUED)
    assert codes(too_many) == {"too_many_gpus"}


def test_a_benchmark_on_a_dataset_bears_its_name_after_a_deletion_too(
    ask: Callable[..., Any], client: TestClient, database: Database, dataset: Dataset
) -> None:
    asked = ask(custom(dataset), custom(dataset, label="mine")).json()["items"][0]
    version = asked["benchmarks"][0]["version"]
    told = {"id": dataset.id, "name": dataset.name, "version": version, "is_deleted": False}
    assert version
    assert asked["datasets"] == {"custom": told, "mine": told}

    with database.write() as session:
        session.delete(session.get(Dataset, dataset.id))

    found = client.get(f"/api/v1/evaluations/{asked['id']}").json()["datasets"]
    assert found == {key: {**told, "is_deleted": True} for key in ("custom", "mine")}


def test_a_renamed_dataset_is_called_as_it_is_now(
    ask: Callable[..., Any], client: TestClient, database: Database, dataset: Dataset
) -> None:
    asked = ask(custom(dataset)).json()["items"][0]
    with database.write() as session:
        row = session.get(Dataset, dataset.id)
        assert row is not None
        row.name = "tickets"

    found = client.get(f"/api/v1/evaluations/{asked['id']}").json()["datasets"]
    assert found["custom"]["name"] == "tickets"
