"""The official client in front of the API in this process, and files with the workers' work done."""

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from fastapi.testclient import TestClient
from openai.types import FileObject
from openai.types.fine_tuning import FineTuningJob
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import service as jobs
from trellis_api.models.models import Model
from trellis_testing.data_tasks import finish_data_tasks

Upload = Callable[..., FileObject]
CHECK = {
    "type": "string_check",
    "name": "right",
    "input": "{{sample.output_text}}",
    "reference": "{{item.reference_answer}}",
    "operation": "eq",
}


def as_lines(rows: list[Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def chats(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "messages": [
                {"role": "user", "content": f"{number}+1?"},
                {"role": "assistant", "content": f"{number + 1}"},
            ]
        }
        for number in range(count)
    ]


def pairs(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "input": {"messages": [{"role": "user", "content": f"{number}+1?"}]},
            "preferred_output": [{"role": "assistant", "content": f"{number + 1}"}],
            "non_preferred_output": [{"role": "assistant", "content": "?"}],
        }
        for number in range(count)
    ]


def prompts(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "messages": [{"role": "user", "content": f"{number}+1?"}],
            "reference_answer": f"{number + 1}",
            "level": {"hard": number % 2 == 0},
        }
        for number in range(count)
    ]


def platform_job(client: TestClient, job: FineTuningJob) -> dict[str, Any]:
    """The job of the platform that carries it out."""
    job_id = client.get(f"/v1/fine_tuning/jobs/{job.id}").json()["trellis_job_id"]
    return dict(client.get(f"/api/v1/jobs/{job_id}").json())


def report(client: TestClient, database: Database, job_id: str, values: list[dict[str, float]]) -> None:
    """Let the run of a job report these metrics, one step each, and a checkpoint of the last step."""
    with database.write() as session:
        claim = jobs.claim_for_launch(session, job_id=job_id)
        assert claim is not None
    now, last = "2026-01-01T00:00:00+00:00", len(values)
    figures = [
        {"kind": "metrics", "time": now, "step": step, "values": each}
        for step, each in enumerate(values, start=1)
    ]
    progress = {"kind": "progress", "time": now, "phase": "training", "step": last, "total_steps": 4}
    saved = {
        "kind": "checkpoint",
        "time": now,
        "step": last,
        "path": f"jobs/{job_id}/checkpoints/global_step_{last}",
        "size_bytes": 9,
    }
    answer = client.post(
        f"/api/v1/ingest/jobs/{job_id}/batches",
        json={"attempt": 1, "sequence": 1, "events": [progress, *figures, saved]},
        headers={"Authorization": f"Bearer {claim.token}"},
    )
    assert answer.status_code == 200, answer.text


@pytest.fixture
def official(client: TestClient, admin_token: str) -> openai.OpenAI:
    """The client of OpenAI's, unchanged; its requests end in this process."""
    return openai.OpenAI(
        base_url="http://testserver/v1", api_key=admin_token, http_client=client, max_retries=0
    )


@pytest.fixture
def upload(official: openai.OpenAI, settings: Settings, database: Database) -> Upload:
    """Uploads examples; their rows are read when it returns, unless told otherwise."""

    def send(rows: list[Any] | bytes, *, is_read: bool = True, name: str = "examples.jsonl") -> FileObject:
        content = rows if isinstance(rows, bytes) else as_lines(rows)
        file = official.files.create(file=(name, content), purpose="fine-tune")
        if is_read:
            finish_data_tasks(settings, database)
        return official.files.retrieve(file.id)

    return send


@pytest.fixture
def job(official: openai.OpenAI, upload: Upload, model: Model) -> FineTuningJob:
    """A supervised job that waits for room."""
    return official.fine_tuning.jobs.create(model=model.name, training_file=upload(chats()).id)


@pytest.fixture
def trained(job: FineTuningJob, client: TestClient, database: Database) -> str:
    """The platform's id of the job, which has trained for two steps, as its run reported it."""
    job_id = str(platform_job(client, job)["id"])
    report(client, database, job_id, [{"train/loss": 1 / step, "train/global_tokens": 50} for step in (1, 2)])
    return job_id
