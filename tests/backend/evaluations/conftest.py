"""An evaluation as the API takes it, and as the workers end it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.benchmarks import service as benchmarks
from trellis_api.benchmarks.installed import InstalledSource
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.evaluations import recording, repository
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Checkpoint
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.evaluations import leave_results

Ask = Callable[..., Any]
Finish = Callable[..., None]
LEVELS = {"level": {"Level 1": 43, "Level 5": 134}, "type": {"Algebra": 124}}


@pytest.fixture
def ask(client: TestClient, model: Model) -> Ask:
    """Post an evaluation of the model on GSM8K, changed as told; the response."""

    def post(*orders: dict[str, Any], path: str = "", **changes: Any) -> Any:
        body = {
            "targets": [{"kind": "model", "model": model.id}],
            "benchmarks": list(orders) or [{"benchmark": "gsm8k"}],
            **changes,
        }
        return client.post(f"/api/v1/evaluations{path}", json=body)

    return post


@pytest.fixture
def install(database: Database) -> Callable[..., None]:
    """Let the files of a benchmark be here, as far as the database knows."""

    def install(name: str, rows: int = 500, groups: dict[str, dict[str, int]] | None = None) -> None:
        source = InstalledSource(
            name=name,
            origin="hub",
            repo_id="a/b",
            revision="0" * 40,
            sha256="1" * 64,
            files={"test": ["test.jsonl"]},
            rows={"test": rows},
            groups=groups or {},
            size_bytes=1,
            installed_at=utc_now().isoformat(),
        )
        with database.write() as session:
            benchmarks.mark_ready(session, source=source)

    return install


@pytest.fixture
def finish(database: Database, settings: Settings) -> Finish:
    """The evaluation's run has ended: what the workers do then."""

    def finish(evaluation_id: str, *, state: JobState = JobState.SUCCEEDED, **left: Any) -> None:
        with database.write() as session:
            row = repository.find_evaluation(session, evaluation_id=evaluation_id)
            assert row is not None
            claim = jobs.claim_for_launch(session, job_id=row.job_id)
            assert claim is not None
            if state == JobState.SUCCEEDED:
                recording.record_result(session, job=claim.job, result=leave_results(settings, row, **left))
            settled = jobs.settle(session, job_id=row.job_id, attempt=claim.job.attempt, state=state)
            assert settled

    return finish


@pytest.fixture
def checkpoint(
    database: Database, settings: Settings, model: Model, dataset: Dataset, make_job: Callable[..., str]
) -> dict[str, Any]:
    """The target of a finished training's checkpoint of step 3."""
    job_id = make_job(state=JobState.SUCCEEDED, model_id=model.id, dataset_id=dataset.id)
    folder: Path = settings.checkpoint_dir(job_id) / "global_step_3"
    folder.mkdir(parents=True)
    row = Checkpoint(job_id=job_id, step=3, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
    with database.write() as session:
        session.add(row)
    return {"kind": "checkpoint", "job": job_id, "step": 3}


@pytest.fixture
def measure(ask: Callable[..., Any], finish: Callable[..., None], install: Callable[..., None]) -> Any:
    """Ask for an evaluation and let it end with these scores; its id."""
    install("gsm8k", rows=4)

    def measure(scores: tuple[float, ...], *orders: dict[str, Any], **changes: Any) -> str:
        response = ask(*orders, **changes)
        assert response.status_code == 201, response.text
        evaluation_id: str = response.json()["items"][0]["id"]
        finish(evaluation_id, scores=scores)
        return evaluation_id

    return measure
