"""Licences of datasets: set by hand, noted by imports, passed on to what is made of the rows."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.licences import MAX_LICENCES, pass_on
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.repository import find_dataset
from trellis_data.versions.records import Commit, Provenance, Version
from trellis_testing.datasets import add_dataset, sums


def bring(session: Session, dataset_id: str, **provenance: Any) -> list[str]:
    """The licences of a dataset after a version with this provenance."""
    dataset = find_dataset(session, dataset_id=dataset_id)
    assert dataset is not None
    commit = Commit(
        message="m",
        author="a",
        time="2026-01-01T00:00:00Z",
        tree="0" * 64,
        rows={},
        provenance=Provenance(**provenance),
    )
    pass_on(session, dataset=dataset, version=Version("1" * 64, commit))
    return dataset.licences


def test_licences_are_set_replaced_and_removed(client: TestClient, dataset: Dataset) -> None:
    path = f"/api/v1/datasets/{dataset.id}"
    assert client.get(path).json()["licences"] == []

    changed = client.patch(path, json={"licences": ["mit", " cc-by-4.0 ", "mit"]})

    assert changed.status_code == 200, changed.text
    assert changed.json()["licences"] == ["mit", "cc-by-4.0"]
    assert client.patch(path, json={"description": "x"}).json()["licences"] == ["mit", "cc-by-4.0"]
    assert client.patch(path, json={"licences": []}).json()["licences"] == []


def test_a_form_has_a_field_for_each_licence(client: TestClient) -> None:
    def send(*licences: str) -> Any:
        rows = {"file": ("x.jsonl", b'{"text": "1 + 1 = 2"}\n')}
        return client.post("/api/v1/datasets", files=rows, data={"name": "mine", "licences": list(licences)})

    made = send("mit", " cc-by-4.0 ", "mit")

    assert made.status_code == 201, made.text
    assert made.json()["licences"] == ["mit", "cc-by-4.0"]
    for wrong in (["x" * 121], [" "], ["mit"] * 21):
        assert send(*wrong).json()["error"] == "upload_malformed"


def test_a_dataset_is_created_with_its_licences(client: TestClient, settings: Settings) -> None:
    (settings.data_root / "rows.jsonl").write_text('{"text": "a"}\n')
    source = {"kind": "path", "path": "rows.jsonl"}

    body = {"source": source, "licences": ["mit", "odc-by", "mit"]}
    made = client.post("/api/v1/datasets/imports", json=body)

    assert made.status_code == 201, made.text
    assert made.json()["licences"] == ["mit", "odc-by"]


@pytest.mark.parametrize(
    "licences", [[""], ["x" * 121], ["a\u0000b"], [f"l{number}" for number in range(21)], "mit", [1]]
)
def test_what_is_no_licence_is_refused(client: TestClient, dataset: Dataset, licences: Any) -> None:
    answer = client.patch(f"/api/v1/datasets/{dataset.id}", json={"licences": licences})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")


def test_imports_and_inputs_add_theirs_once(database: Database, settings: Settings) -> None:
    with database.write() as session:
        first = add_dataset(session, settings, sums(8))
        derived = add_dataset(session, settings, sums(9), licences=["own"])
        head, first_id, derived_id = str(first.head), first.id, derived.id
        assert bring(session, first_id, notes={"licences": ["mit"]}) == ["mit"]
        noted = {"licences": ["mit", "odc-by", 7, "", "x" * 200]}
        assert bring(session, first_id, notes=noted) == ["mit", "odc-by"]
        assert bring(session, derived_id, inputs=[head]) == ["own", "mit", "odc-by"]
        assert bring(session, derived_id, inputs=["0" * 64]) == ["own", "mit", "odc-by"]
        many = {"licences": [f"l{number}" for number in range(50)]}
        assert len(bring(session, derived_id, notes=many)) == MAX_LICENCES
