"""What the request of an active sweep names stays until the sweep is over, between its runs too."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis_api.core import uses
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.uses import RefKey, Used, VersionKey
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_api.sweeps.models import Sweep
from trellis_api.sweeps.schemas import SweepCreate
from trellis_contracts.states import JobState
from trellis_testing.datasets import add_version
from trellis_testing.sweeps import METRIC, SweepRig

VERSION = "ab" * 32
REWARDS = [
    {"name": "python", "options": {"file": "rwf_reward"}},
    {"name": "reward_model", "options": {"model": "mdl_reward"}},
]
ORDERS = [
    {"benchmark": "gsm8k"},
    {
        "benchmark": "custom",
        "dataset": "ds_own",
        "version": VERSION,
        "scorer": {"kind": "file", "file": "rwf_scorer"},
    },
]
EVALUATE = {"benchmarks": ORDERS, "every_steps": 10}
NAMED: list[tuple[dict[str, Any], Used[Any], Any]] = [
    ({}, uses.DATASETS, "ds_train"),
    ({"validation_dataset": "ds_validate"}, uses.DATASETS, "ds_validate"),
    ({"evaluate": EVALUATE}, uses.DATASETS, "ds_own"),
    ({"dataset_version": VERSION[:12]}, uses.VERSIONS, VersionKey("ds_train", VERSION)),
    (
        {"validation_dataset": "ds_validate", "validation_version": VERSION},
        uses.VERSIONS,
        VersionKey("ds_validate", VERSION),
    ),
    ({"evaluate": EVALUATE}, uses.VERSIONS, VersionKey("ds_own", VERSION)),
    ({"dataset_version": "clean"}, uses.REFS, RefKey("ds_train", "clean")),
    ({}, uses.MODELS, "mdl_base"),
    ({"params": {"rewards": REWARDS}}, uses.MODELS, "mdl_reward"),
    ({"params": {"rewards": REWARDS}}, uses.REWARD_FILES, "rwf_reward"),
    ({"evaluate": EVALUATE}, uses.REWARD_FILES, "rwf_scorer"),
    ({"evaluate": EVALUATE}, uses.BENCHMARKS, "gsm8k"),
    ({"params": {"environment": "env_a"}}, uses.ENVIRONMENTS, "env_a"),
    ({"params": {"workflow": "wfl_a"}}, uses.WORKFLOWS, "wfl_a"),
]


@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize(
    ("job", "kind", "key"), NAMED, ids=[f"{kind.noun}-{number}" for number, (_, kind, _) in enumerate(NAMED)]
)
def test_what_the_job_names_is_used_by_its_sweep_while_that_begins_runs(
    database: Database, session: Session, job: dict[str, Any], kind: Used[Any], key: Any, is_active: bool
) -> None:
    request = {
        "name": "rates",
        "job": {"recipe": "grpo", "model": "mdl_base", "dataset": "ds_train", **job},
        "parameters": {"learning_rate": {"values": [1e-6, 1e-5]}},
    }
    document = SweepCreate.model_validate(request).model_dump(mode="json")
    with database.write() as writing:
        writing.add(
            Sweep(id="swp_aaaaaaaaaaaa", name="rates", recipe="grpo", document=document, is_active=is_active)
        )

    found = [(use.kind, use.label) for use in kind.find(session, key)]

    assert found == ([("sweep", "rates")] if is_active else [])


def refuse(client: TestClient, path: str, code: str) -> Any:
    answer = client.delete(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"]) == (409, code), answer.text
    assert "rates" in answer.json()["message"]
    return answer.json()["details"]


def test_between_runs_nothing_goes_and_after_the_sweep_all_may(
    client: TestClient, database: Database, settings: Settings, model: Model, dataset: Dataset
) -> None:
    rig = SweepRig(database, settings)
    pinned = str(dataset.head)
    with database.write() as session:
        add_version(session, settings, dataset.id, [{"prompt": "1+1", "answer": "2"}] * 8)
    job = {"recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}
    request = {
        "name": "rates",
        "job": {**job, "dataset_version": pinned},
        "parameters": {"learning_rate": {"values": [1e-6, 1e-5]}},
        "search": {"method": "grid"},
        "objective": {"metric": METRIC},
        "parallel": 1,
    }
    created = client.post("/api/v1/sweeps", json=request)
    assert created.status_code == 201, created.text
    sweep_id = created.json()["id"]
    rig.look()
    (running,) = rig.active()
    rig.measure(running.id, 1, 0.5)
    rig.end(running.id, JobState.SUCCEEDED)
    assert rig.active() == []

    version = refuse(client, f"datasets/{dataset.id}/versions/{pinned}", "version_in_use")
    rows = refuse(client, f"datasets/{dataset.id}", "dataset_in_use")
    weights = refuse(client, f"models/{model.id}", "model_in_use")

    use = {"kind": "sweep", "id": sweep_id, "name": "rates", "state": None, "is_unfinished": True}
    assert version["uses"] == [use]
    assert rows == {"jobs": ["rates"], "dry_runs": [], "tasks": []}
    assert weights == {"jobs": ["rates"]}
    client.post(f"/api/v1/sweeps/{sweep_id}/stop").raise_for_status()
    assert client.delete(f"/api/v1/models/{model.id}").status_code == 204
    assert client.delete(f"/api/v1/datasets/{dataset.id}").status_code == 204
