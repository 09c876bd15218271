"""Exports as the API takes them: what is refused, what holds what, and what becomes of it."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import repository, service
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.jobs.models import Checkpoint
from trellis_api.jobs.queue import admission
from trellis_api.models.models import Model
from trellis_api.models.registration import inspect_export, register_export
from trellis_api.models.service import model_folder
from trellis_contracts.states import JobState
from trellis_testing.model_folders import write_model_folder

MakeSource = Callable[..., str]


@pytest.fixture
def make_source(
    database: Database, settings: Settings, model: Model, dataset: Dataset, make_job: Callable[..., str]
) -> MakeSource:
    """A finished training with a checkpoint of step 3; returns its id."""

    def make(*, steps: tuple[int, ...] = (3,), has_adapter: bool = False, **changes: Any) -> str:
        values = {"state": JobState.SUCCEEDED, "model_id": model.id, "dataset_id": dataset.id, **changes}
        job_id = make_job(**values)
        for step in steps:
            folder = settings.checkpoint_dir(job_id) / f"global_step_{step}"
            (folder / "actor").mkdir(parents=True)
            if has_adapter:
                (folder / "actor" / "lora_train_meta.json").write_text("{}")
            row = Checkpoint(
                job_id=job_id, step=step, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now()
            )
            with database.write() as session:
                session.add(row)
        return job_id

    return make


def ask(client: TestClient, job_id: str, step: int = 3, **body: Any) -> Any:
    return client.post(f"/api/v1/jobs/{job_id}/checkpoints/{step}/export", json={"name": "made", **body})


def list_ids(client: TestClient, **query: str) -> list[str]:
    return [each["id"] for each in client.get("/api/v1/jobs", params=query).json()["items"]]


def finish(database: Database, settings: Settings, job_id: str) -> None:
    """The export's run has ended well: what the workers do then."""
    with database.read() as session:
        job = service.get_job(session, job_id=job_id)
        order = ExportOrder.model_validate(job.export)
    write_model_folder(model_folder(settings, order.model_id))
    facts = inspect_export(settings, order)
    with database.write() as session:
        claim = service.claim_for_launch(session, job_id=job_id)
        assert claim is not None
    with database.write() as session:
        assert service.settle(session, job_id=job_id, attempt=1, state=JobState.SUCCEEDED, exit_code=0)
        job = service.get_locked_job(session, job_id=job_id)
        register_export(session, settings, job=job, facts=facts)


def test_an_export_is_a_job_that_needs_no_slot(client: TestClient, make_source: MakeSource) -> None:
    source = make_source()

    answer = ask(client, source, description="the third")

    job = answer.json()
    assert answer.status_code == 201, answer.text
    assert (job["kind"], job["state"], job["resources"]["gpus"]) == ("export", "queued", 0)
    assert job["dataset"] is None
    assert job["export"] == {
        "source": {"id": source, "name": "a job"}, "step": 3, "form": "merged", "name": "made",
    }  # fmt: skip
    assert job["exported_model"] is None
    assert not job["can_clone"]
    kinds = {
        kind: client.get("/api/v1/jobs", params={"kind": kind}).json()["items"]
        for kind in ("train", "export")
    }
    assert [each["id"] for each in kinds["train"]] == [source]
    assert [each["id"] for each in kinds["export"]] == [job["id"]]


def test_the_export_of_what_is_not_there_is_refused(client: TestClient, make_source: MakeSource) -> None:
    source = make_source(steps=(3, 4))
    client.delete(f"/api/v1/jobs/{source}/checkpoints/4")

    answers = [ask(client, source, step=9), ask(client, source, step=4), ask(client, source, form="adapter")]
    export = ask(client, source).json()
    answers.append(ask(client, export["id"]))

    assert [answer.json()["error"] for answer in answers] == [
        "checkpoint_not_found", "checkpoint_pruned", "checkpoint_not_exportable", "checkpoint_not_exportable",
    ]  # fmt: skip


def test_a_name_is_promised_once(client: TestClient, make_source: MakeSource, model: Model) -> None:
    source = make_source()

    taken = ask(client, source, name=model.name)
    first = ask(client, source)
    second = ask(client, source)
    other = ask(client, source, name="another")

    assert taken.json()["error"] == "model_name_taken"
    assert first.status_code == 201
    assert (second.status_code, second.json()["error"]) == (409, "model_name_taken")
    assert other.status_code == 201


def test_an_adapter_needs_its_base_model(
    client: TestClient, database: Database, make_source: MakeSource, model: Model
) -> None:
    source = make_source(has_adapter=True)
    checkpoint = client.get(f"/api/v1/jobs/{source}/checkpoints").json()["items"][0]
    alone = ask(client, source, form="adapter", name="alone")
    in_use = client.delete(f"/api/v1/models/{model.id}")
    client.post(f"/api/v1/jobs/{alone.json()['id']}/stop")
    client.delete(f"/api/v1/models/{model.id}")

    without_base = ask(client, source)

    assert checkpoint["has_adapter"]
    assert alone.status_code == 201
    assert in_use.json()["error"] == "model_in_use"
    assert without_base.json()["error"] == "checkpoint_not_exportable"


def test_the_source_stays_while_it_is_exported(
    client: TestClient, database: Database, make_source: MakeSource
) -> None:
    source = make_source(state=JobState.FAILED, steps=(3, 5))
    export = ask(client, source).json()

    refused = [
        client.delete(f"/api/v1/jobs/{source}"),
        client.delete(f"/api/v1/jobs/{source}/checkpoints/3"),
        client.post(f"/api/v1/jobs/{source}/resume", json={"checkpoint_step": None}),
    ]
    client.delete(f"/api/v1/jobs/{source}/checkpoints/5")
    from_start = client.post(f"/api/v1/jobs/{source}/resume", json={"checkpoint_step": 3})
    kept = client.get(f"/api/v1/jobs/{source}/checkpoints").json()["items"]
    client.post(f"/api/v1/jobs/{source}/stop")
    client.post(f"/api/v1/jobs/{export['id']}/stop")

    assert [answer.json().get("error") for answer in refused[:2]] == ["checkpoint_in_use"] * 2
    assert from_start.status_code in (200, 409)
    assert "exporting" in next(each for each in kept if each["step"] == 3)["kept_because"]
    assert client.delete(f"/api/v1/jobs/{source}").status_code == 204


def test_a_finished_export_has_registered_its_model(
    client: TestClient, database: Database, settings: Settings, make_source: MakeSource, model: Model,
    dataset: Dataset,
) -> None:  # fmt: skip
    source = make_source()
    export = ask(client, source).json()

    finish(database, settings, export["id"])
    client.delete(f"/api/v1/jobs/{source}")

    made = client.get(f"/api/v1/jobs/{export['id']}").json()["exported_model"]
    found = client.get(f"/api/v1/models/{made['id']}").json()
    assert (found["name"], found["state"]) == ("made", "ready")
    assert found["source"] == {"kind": "export", "job_id": source, "step": 3, "form": "merged"}
    lineage = found["lineage"]
    assert (lineage["job_id"], lineage["job_name"], lineage["step"]) == (source, "a job", 3)
    assert (lineage["model_id"], lineage["model_name"]) == (model.id, model.name)
    assert lineage["dataset_id"] == dataset.id
    assert (lineage["recipe"], lineage["form"], lineage["export_job_id"]) == ("grpo", "merged", export["id"])


def test_a_name_that_was_taken_meanwhile_gets_a_number(
    client: TestClient, database: Database, settings: Settings, make_source: MakeSource,
) -> None:  # fmt: skip
    export = ask(client, make_source()).json()
    write_model_folder(settings.data_root / "models" / "mine")
    client.post("/api/v1/models", json={"name": "made", "source": {"kind": "local", "path": "models/mine"}})

    finish(database, settings, export["id"])

    assert client.get(f"/api/v1/jobs/{export['id']}").json()["exported_model"]["name"] == "made (2)"


def test_nothing_starts_from_an_adapter(
    client: TestClient, database: Database, model: Model, dataset: Dataset
) -> None:
    with database.write() as session:
        row = session.get(Model, model.id)
        assert row is not None
        row.lineage = {"form": "adapter"}
        session.add(row)
    body = {"name": "next", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}

    answer = client.post("/api/v1/jobs", json=body)

    assert answer.status_code == 422
    assert answer.json()["error"] == "model_is_adapter"
    assert "merged" in answer.json()["message"]


def succeed(database: Database, settings: Settings, job_id: str) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        for _ in range(2):  # once, however often it is asked
            exports.queue_promised(session, job=job, settings=settings)


def list_exports(client: TestClient) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get("/api/v1/jobs", params={"kind": "export"}).json()["items"]
    return items


def test_a_training_exports_its_last_checkpoint_when_that_was_asked_for(
    client: TestClient, database: Database, settings: Settings, make_source: MakeSource
) -> None:
    source = make_source(steps=(3, 6), export_as={"name": "made", "best_by": None, "mode": None})

    succeed(database, settings, source)

    (export,) = list_exports(client)
    assert (export["export"]["step"], export["export"]["name"]) == (6, "made")
    promise = client.get(f"/api/v1/jobs/{source}").json()["export_as"]
    assert promise["job"] == {"id": export["id"], "name": export["name"]}
    assert promise["problem"] is None


def test_it_exports_the_best_one_by_a_metric(
    client: TestClient, database: Database, settings: Settings, make_source: MakeSource
) -> None:
    source = make_source(steps=(3, 6), export_as={"name": "made", "best_by": "val/loss", "mode": None})
    with database.write() as session:
        for step, loss in ((3, 0.1), (6, 0.4)):
            row = repository.find_checkpoint(session, job_id=source, step=step)
            assert row is not None
            row.metrics = {"val/loss": loss}
            session.add(row)

    succeed(database, settings, source)

    assert [each["export"]["step"] for each in list_exports(client)] == [3]


@pytest.mark.parametrize(("steps", "words"), [((), "no checkpoint"), ((3,), "val/loss")])
def test_what_cannot_be_kept_of_the_promise_is_said(
    steps: tuple[int, ...], words: str, client: TestClient, database: Database, settings: Settings,
    make_source: MakeSource,
) -> None:  # fmt: skip
    source = make_source(steps=steps, export_as={"name": "made", "best_by": "val/loss", "mode": None})

    succeed(database, settings, source)

    job = client.get(f"/api/v1/jobs/{source}").json()
    assert job["state"] == "succeeded"
    assert words in job["export_as"]["problem"]
    assert len(list_exports(client)) == len(steps)


def test_everything_that_could_not_be_kept_of_the_promise_is_said(
    client: TestClient, database: Database, settings: Settings, make_source: MakeSource, model: Model
) -> None:
    source = make_source(steps=(3,), export_as={"name": model.name, "best_by": "val/loss", "mode": None})

    succeed(database, settings, source)

    problem = client.get(f"/api/v1/jobs/{source}").json()["export_as"]["problem"]
    assert "No checkpoint has a value of val/loss" in problem
    assert f"The name '{model.name}' was taken in the meantime" in problem


def test_exports_stand_in_a_line_of_their_own(database: Database, make_job: Callable[..., str]) -> None:
    big = make_job(gpus=4)
    make_job(gpus=4)
    exports_queued = [make_job(kind="export", gpus=0, dataset_id=None, export={}) for _ in range(2)]

    claimed = []
    for _ in range(5):
        with database.write() as session:
            claim = admission.claim_next(session, total_slots=4, max_exports=1)
        claimed.append(claim.job.id if claim else None)

    assert claimed == [big, exports_queued[0], None, None, None]


def test_the_request_for_a_job_may_name_a_model_that_exists_already(
    client: TestClient, model: Model, dataset: Dataset
) -> None:
    body = {"name": "next", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}

    taken = client.post("/api/v1/jobs", json={**body, "export_as": {"name": model.name}})
    free = client.post("/api/v1/jobs", json={**body, "export_as": {"name": "made"}})

    preview = client.post("/api/v1/jobs/preview", json={**body, "export_as": {"name": model.name}}).json()

    assert taken.json()["error"] == "model_name_taken"
    assert [issue["field"] for issue in preview["errors"]] == ["export_as.name"]
    assert free.json()["export_as"] == {
        "name": "made", "best_by": None, "mode": None, "job": None, "problem": None,
    }  # fmt: skip
    assert free.json()["kind"] == "train"


def test_what_a_resumed_run_writes_anew_is_not_exported(client: TestClient, make_source: MakeSource) -> None:
    source = make_source(steps=(3, 6), state=JobState.RUNNING, attempt=2, resume_step=3, step=4)

    refused = ask(client, source, step=6)

    assert (refused.status_code, refused.json()["error"]) == (409, "checkpoint_in_use")
    found = client.get(f"/api/v1/jobs/{source}/checkpoints").json()["items"]
    assert {each["step"]: each["can_export"] for each in found} == {3: True, 6: False}
    assert ask(client, source, step=3).status_code == 201


def test_what_is_being_exported_cannot_be_removed(client: TestClient, make_source: MakeSource) -> None:
    source = make_source()
    assert ask(client, source).status_code == 201

    (found,) = client.get(f"/api/v1/jobs/{source}/checkpoints").json()["items"]
    refused = client.delete(f"/api/v1/jobs/{source}/checkpoints/3")

    assert not found["can_delete"]
    assert refused.status_code == 409
