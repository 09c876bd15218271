"""What models were made from, over several trainings, also when parts of it were deleted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.evaluations.models import Evaluation
from trellis_api.jobs import service
from trellis_api.jobs.exports.training import describe_training
from trellis_api.models import repository
from trellis_api.models.lineage import continue_lineage
from trellis_api.models.models import Model
from trellis_api.reports import service as reports
from trellis_api.reports.schemas import ReportCreate
from trellis_contracts.states import JobState


def train(
    database: Database, make_job: Callable[..., str], base: str, dataset: str, name: str
) -> tuple[str, str]:
    """A finished training and the model that was made of its step 5."""
    job_id = make_job(name=f"job {name}", state=JobState.SUCCEEDED, model_id=base, dataset_id=dataset)
    with database.write() as session:
        job = service.get_job(session, job_id=job_id)
        lineage = continue_lineage(session, describe_training(session, job=job, step=5), form="merged")
        model = Model(
            id=new_id("mdl"), name=name, state="ready",
            source={"kind": "checkpoint", "job_id": job_id, "step": 5}, lineage=lineage.model_dump(),
            warnings=[],
        )  # fmt: skip
        session.add(model)
    return job_id, model.id


def test_the_chain_leads_from_the_first_model_to_the_last(
    client: TestClient, database: Database, make_job: Callable[..., str], model: Model, dataset: Dataset
) -> None:
    first_job, first = train(database, make_job, model.id, dataset.id, "first")
    second_job, second = train(database, make_job, first, dataset.id, "second")

    seen = {each: client.get(f"/api/v1/models/{each}/lineage").json() for each in (model.id, first, second)}

    wanted = {model.id, first_job, first, second_job, second, dataset.id}
    for lineage in seen.values():
        assert {node["id"] for node in lineage["nodes"]} == wanted
        edges = {(edge["source"], edge["target"], edge["role"], edge["step"]) for edge in lineage["edges"]}
        assert edges == {
            (model.id, first_job, "base", None),
            (dataset.id, first_job, "data", None),
            (first_job, first, "checkpoint", 5),
            (first, second_job, "base", None),
            (dataset.id, second_job, "data", None),
            (second_job, second, "checkpoint", 5),
        }


def test_the_chain_stays_readable_when_its_parts_are_deleted(
    client: TestClient, database: Database, make_job: Callable[..., str], model: Model, dataset: Dataset
) -> None:
    first_job, first = train(database, make_job, model.id, dataset.id, "first")
    second_job, second = train(database, make_job, first, dataset.id, "second")
    for path in (f"jobs/{first_job}", f"jobs/{second_job}", f"models/{first}", f"models/{model.id}"):
        assert client.delete(f"/api/v1/{path}").status_code == 204

    nodes = {node["id"]: node for node in client.get(f"/api/v1/models/{second}/lineage").json()["nodes"]}

    assert {node_id: node["name"] for node_id, node in nodes.items()} == {
        second: "second", second_job: "job second", first: "first", first_job: "job first",
        model.id: model.name, dataset.id: dataset.name,
    }  # fmt: skip
    assert [node_id for node_id, node in nodes.items() if node["exists"]] in (
        [second, dataset.id], [dataset.id, second],
    )  # fmt: skip


def test_models_are_found_by_parent_and_by_checkpoint(
    database: Database, make_job: Callable[..., str], model: Model, dataset: Dataset
) -> None:
    job_id, made = train(database, make_job, model.id, dataset.id, "made")

    with database.read() as session:
        children = repository.list_children(session, model_id=model.id, limit=10)
        steps = repository.list_exported_steps(session, job_id=job_id)

    assert ([child.id for child in children], steps) == ([made], {5})


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("parent_model_id = 'x' ORDER BY created_at DESC", "ix_models_parent"),
        ("source_job_id = 'x'", "ix_models_source"),
    ],
)
def test_sqlite_looks_descendants_up_in_an_index(tmp_path: Path, condition: str, index: str) -> None:
    settings = Settings(data_root=tmp_path)
    upgrade(settings)
    database = Database(settings)
    with database.read() as session:
        plan = session.execute(text(f"EXPLAIN QUERY PLAN SELECT id FROM models WHERE {condition}")).all()
    database.dispose()

    assert index in str(plan)


def test_what_was_measured_of_models_and_checkpoints_belongs_to_their_lineage(
    client: TestClient, database: Database, make_job: Callable[..., str], model: Model, dataset: Dataset
) -> None:
    job, made = train(database, make_job, model.id, dataset.id, "made")
    targets: dict[str, dict[str, Any]] = {
        "ev_aaaaaaaaaaaa": {"target_kind": "model", "target_model_id": made},
        "ev_bbbbbbbbbbbb": {"target_kind": "checkpoint", "target_job_id": job, "target_step": 5},
        "ev_cccccccccccc": {"target_kind": "model", "target_model_id": "mdl_zzzzzzzzzzzz"},
    }
    with database.write() as session:
        for evaluation_id, target in targets.items():
            carrier = make_job(kind="evaluate", dataset_id=None)
            fields: dict[str, Any] = {
                "job_id": carrier,
                "name": evaluation_id,
                "target_name": "it",
                "request": {},
            }
            session.add(Evaluation(id=evaluation_id, results=[], **fields, **target))
        session.flush()
        request = ReportCreate(name="told", evaluations=list(targets))
        report = reports.create(session, request=request).id

    found = client.get(f"/api/v1/models/{made}/lineage").json()

    kinds = {node["id"]: node["kind"] for node in found["nodes"]}
    assert (kinds["ev_aaaaaaaaaaaa"], kinds["ev_bbbbbbbbbbbb"], kinds[report]) == (
        "evaluation", "evaluation", "report",
    )  # fmt: skip
    assert "ev_cccccccccccc" not in kinds
    edges = {(edge["source"], edge["target"], edge["role"], edge["step"]) for edge in found["edges"]}
    assert {
        (made, "ev_aaaaaaaaaaaa", "measured", None),
        (job, "ev_bbbbbbbbbbbb", "measured", 5),
        ("ev_aaaaaaaaaaaa", report, "report", None),
        ("ev_bbbbbbbbbbbb", report, "report", None),
    } <= edges
    assert not found["is_cut"]


@pytest.mark.parametrize(
    ("place", "most"),
    [
        ("trellis_api.lineage.models.MAX_NODES", 2),
        ("trellis_api.lineage.measured.MOST_EVALUATIONS", 1),
    ],
)
def test_a_lineage_that_is_cut_says_so(
    client: TestClient,
    database: Database,
    make_job: Callable[..., str],
    model: Model,
    dataset: Dataset,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    most: int,
) -> None:
    for name in ("first", "second"):
        _, made = train(database, make_job, model.id, dataset.id, name)
        fields: dict[str, Any] = {"job_id": make_job(kind="evaluate", dataset_id=None), "name": name}
        target = {"target_kind": "model", "target_model_id": made, "target_name": "it"}
        with database.write() as session:
            session.add(Evaluation(id=new_id("ev"), request={}, results=[], **fields, **target))
    path = f"/api/v1/models/{model.id}/lineage"
    whole = client.get(path).json()
    monkeypatch.setattr(place, most)

    cut = client.get(path).json()

    assert (whole["is_cut"], cut["is_cut"]) == (False, True)
    assert len(cut["nodes"]) < len(whole["nodes"])
