"""A platform without a cluster: its API in this process, its database, and what workers do with data."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api import tables
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets.store import open_store
from trellis_api.main import create_app
from trellis_api.models.models import Model
from trellis_testing.data_tasks import finish_data_tasks
from trellis_train.starter.model import write_model


def row_of(n: int) -> dict[str, str]:
    """A row in so plain a language that nothing heavy is loaded to tell which."""
    return {
        "prompt": f"What is the sum of {n} and {n}, and how did you come to that?",
        "answer": f"It is {2 * n}, and this is what you get from the two of them.",
    }


#: Two of these rows are the same, and one has no answer.
ROWS = [*map(row_of, range(30)), row_of(1), {**row_of(99), "answer": ""}]
CLEAN = {
    "name": "clean",
    "steps": [{"operator": "empty_answers"}, {"operator": "exact_duplicates"}],
}


@dataclass
class Platform:
    """The API and the database behind it."""

    settings: Settings
    database: Database
    client: TestClient

    def finish(self, *, in_child: bool = False) -> list[str]:
        """What workers do when the message arrives."""
        return finish_data_tasks(self.settings, self.database, in_child=in_child)

    def upload(self, content: bytes | list[dict[str, Any]], name: str = "rows.jsonl") -> dict[str, Any]:
        """A dataset that waits to be read."""
        if not isinstance(content, bytes):
            content = b"\n".join(json.dumps(row).encode() for row in content)
        answer = self.client.post("/datasets", files={"file": (name, content)}, data={"name": name})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def make(self, content: bytes | list[dict[str, Any]], name: str = "rows.jsonl") -> dict[str, Any]:
        """A dataset with rows."""
        made = self.upload(content, name)
        self.finish()
        dataset = self.get(f"/datasets/{made['id']}")
        assert dataset["state"] == "ready", dataset
        return dataset

    def get(self, path: str, **params: Any) -> Any:
        answer = self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 202) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def start_run(self, dataset: str, pipeline: dict[str, Any] = CLEAN, **fields: Any) -> str:
        """The id of the task of a run that waits."""
        run = self.post("/pipelines/runs", {"dataset": dataset, "pipeline": pipeline, **fields})
        return str(run["task"]["id"])

    def task(self, task_id: str) -> dict[str, Any]:
        return dict(self.get(f"/data-tasks/{task_id}"))

    def folder(self, task_id: str) -> Path:
        return self.settings.data_task_dir(task_id)

    def list_objects(self) -> set[str]:
        """Files of the store."""
        return {path.name for path in (open_store(self.settings).root / "objects").rglob("*.*")}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What processes of this platform are started with."""
    return {
        "TRELLIS_DATA_ROOT": str(tmp_path / "data"),
        "TRELLIS_PLATFORM": "cpu",
        "TRELLIS_MIN_FREE_DISK_BYTES": "0",
        "TRELLIS_DATA_PROCESSES": "2",
    }


@pytest.fixture
def platform(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Platform]:
    """With nothing in it."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "data").mkdir()
    settings = Settings()
    database = Database(settings)
    tables.metadata.create_all(database.engine)
    app = create_app(settings, database)
    monkeypatch.setattr(app.state.probes, "start", lambda: None)
    token = ensure_admin_token(database, path=settings.admin_token_path)
    with TestClient(app, base_url="http://test/api/v1") as client:
        client.headers["Authorization"] = f"Bearer {token}"
        yield Platform(settings, database, client)
    database.dispose()


@pytest.fixture
def dataset(platform: Platform) -> dict[str, Any]:
    """``ROWS`` as a dataset."""
    return platform.make(ROWS)


def add_model(platform: Platform) -> str:
    """The id of the starter model, whose weights are random."""
    model_id = new_id("mdl")
    write_model(platform.settings.data_root / "models" / model_id, 0)
    with platform.database.write() as session:
        session.add(
            Model(
                id=model_id,
                name=model_id,
                state="ready",
                source={"kind": "local"},
                lineage={},
                path=f"models/{model_id}",
                has_chat_template=True,
                warnings=[],
            )
        )
    return model_id
