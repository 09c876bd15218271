"""From the file that was uploaded to the model that learned from it."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.models import Dataset
from trellis_api.evaluations.models import Evaluation
from trellis_api.lineage import datasets as lineage
from trellis_api.models.models import Model
from trellis_api.reports import service as reports
from trellis_api.reports.schemas import ReportCreate
from trellis_contracts.states import JobState
from trellis_testing.datasets import add_dataset, add_version, sums
from trellis_testing.uploads import Upload


def edges_of(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(edge["source"], edge["target"], edge["role"]) for edge in found["edges"]}


def test_from_the_source_to_the_model(
    client: TestClient, upload: Upload, database: Database, make_job: Callable[..., str]
) -> None:
    dataset = upload(b'{"question": "1+1?", "answer": "2"}\n', "sums.jsonl")
    job = make_job(
        name="taught", state=JobState.SUCCEEDED, dataset_id=dataset["id"], dataset_version=dataset["head"]
    )
    with database.write() as session:
        made = {"job_id": job, "step": 3, "dataset_id": dataset["id"], "dataset_version": dataset["head"]}
        session.add(
            Model(id="mdl_aaaaaaaaaaaa", name="pupil", state="ready", source={}, lineage=made, warnings=[])
        )

    found = client.get(f"/api/v1/datasets/{dataset['id']}/lineage").json()

    nodes = {node["id"]: node for node in found["nodes"]}
    (source,) = (node for node in found["nodes"] if node["kind"] == "source")
    (task,) = (node for node in found["nodes"] if node["kind"] == "task")
    assert (source["name"], task["name"], task["state"]) == ("sums.jsonl", "import", "succeeded")
    assert edges_of(found) == {
        (source["id"], task["id"], "imported"),
        (task["id"], dataset["head"], "made"),
        (dataset["head"], job, "data"),
        (job, "mdl_aaaaaaaaaaaa", "model"),
    }
    assert (nodes[dataset["head"]]["number"], nodes[dataset["head"]]["row_count"]) == (1, 1)
    assert (nodes[job]["name"], nodes["mdl_aaaaaaaaaaaa"]["name"]) == ("taught", "pupil")
    assert not found["is_cut"]
    (use, *_) = client.get(f"/api/v1/datasets/{dataset['id']}/versions/main").json()["uses"]
    assert use["kind"] in ("job", "model")


def test_versions_hang_together_by_their_parents(
    client: TestClient, database: Database, settings: Settings, dataset: Dataset,
    make_job: Callable[..., str],
) -> None:  # fmt: skip
    first = str(dataset.head)
    with database.write() as session:
        second = add_version(session, settings, dataset.id, sums(9)).id
    old = make_job(dataset_id=dataset.id)
    checked = make_job(
        dataset_id="ds_bbbbbbbbbbbb", validation_dataset_id=dataset.id, validation_version=second
    )

    found = client.get(f"/api/v1/datasets/{dataset.id}/lineage").json()

    assert {(first, second, "parent"), (first, old, "data"), (second, checked, "validation")} <= edges_of(
        found
    )
    assert ("source:first", first, "imported") in edges_of(found)


def test_what_another_dataset_gave_is_shown_though_it_is_gone(
    client: TestClient, database: Database, settings: Settings, dataset: Dataset
) -> None:
    with database.write() as session:
        other = add_dataset(session, settings, sums(4))
        session.add(
            DataTask(
                id="dtk_aaaaaaaaaaaa", kind="pipeline", state="succeeded", dataset_id=other.id,
                version_id=other.head, made_dataset_id=dataset.id, made_version_id=dataset.head,
                request={"kind": "pipeline", "pipeline": {"name": "clean"}},
            )
        )  # fmt: skip
    client.delete(f"/api/v1/datasets/{other.id}").raise_for_status()

    found = client.get(f"/api/v1/datasets/{dataset.id}/lineage").json()

    nodes = {node["id"]: node for node in found["nodes"]}
    assert nodes["dtk_aaaaaaaaaaaa"]["recipe"] == "clean"
    assert (nodes[str(other.head)]["exists"], nodes[str(other.head)]["dataset"]) == (False, other.id)
    assert {
        (other.head, "dtk_aaaaaaaaaaaa", "input"), ("dtk_aaaaaaaaaaaa", dataset.head, "made"),
    } <= edges_of(found)  # fmt: skip


def test_a_large_lineage_is_cut_and_says_so(
    client: TestClient, dataset: Dataset, make_job: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "MOST_JOBS", 2)
    for _ in range(3):
        make_job(dataset_id=dataset.id, dataset_version=dataset.head)

    found = client.get(f"/api/v1/datasets/{dataset.id}/lineage").json()

    assert found["is_cut"]
    assert len([node for node in found["nodes"] if node["kind"] == "job"]) == 2


def test_the_lineage_of_nothing_is_not_found(client: TestClient) -> None:
    assert client.get("/api/v1/datasets/ds_bbbbbbbbbbbb/lineage").status_code == 404


def test_from_the_rows_to_what_was_measured_on_them_and_told(
    client: TestClient, database: Database, dataset: Dataset, make_job: Callable[..., str]
) -> None:
    trained = make_job(
        state=JobState.SUCCEEDED, dataset_id=dataset.id, dataset_version=dataset.head, name="trained"
    )
    order = {"benchmark": "custom", "label": "own", "dataset": dataset.id, "version": dataset.head}
    evaluations = [
        Evaluation(
            id=f"ev_{letter * 12}", job_id=make_job(kind="evaluate", dataset_id=None), name=name,
            target_name=name, request={"benchmarks": benchmarks}, results=[], **target,
        )
        for letter, name, benchmarks, target in (
            ("a", "on the rows", [order], {"target_kind": "model", "target_model_id": "mdl_zzzzzzzzzzzz"}),
            ("b", "of it", [], {"target_kind": "checkpoint", "target_job_id": trained, "target_step": 3}),
            ("c", "of others", [], {"target_kind": "model", "target_model_id": "mdl_yyyyyyyyyyyy"}),
        )
    ]  # fmt: skip
    with database.write() as session:
        session.add_all(evaluations)
        session.flush()
        request = ReportCreate(name="told", evaluations=["ev_" + "a" * 12, "ev_" + "c" * 12])
        report_id = reports.create(session, request=request).id

    found = client.get(f"/api/v1/datasets/{dataset.id}/lineage").json()

    nodes = {node["id"]: node for node in found["nodes"]}
    assert {
        (dataset.head, "ev_" + "a" * 12, "benchmark"),
        ("mdl_zzzzzzzzzzzz", "ev_" + "a" * 12, "measured"),
        (trained, "ev_" + "b" * 12, "measured"),
        ("ev_" + "a" * 12, report_id, "report"),
    } <= edges_of(found)
    assert "ev_" + "c" * 12 not in nodes
    assert (nodes["ev_" + "a" * 12]["kind"], nodes["ev_" + "a" * 12]["state"]) == ("evaluation", "queued")
    assert not nodes["mdl_zzzzzzzzzzzz"]["exists"]
    assert (nodes[report_id]["kind"], nodes[report_id]["name"]) == ("report", "told")
