"""A model, a dataset, and jobs that report as a training process does: through the ingest API."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import service
from trellis_cli.client import ApiClient
from trellis_cli.waiting import wait_for_dataset
from trellis_contracts.states import JobState
from trellis_testing.reporting_jobs import ReportingJob

CallApi = Callable[..., Any]


@pytest.fixture(scope="session")
def database(dashboard) -> Iterator[Database]:  # type: ignore[no-untyped-def]
    """The platform's own database, as a worker opens it."""
    opened = Database(Settings(data_root=dashboard.data_root))
    yield opened
    opened.dispose()


def _write_model(folder: Path) -> None:
    """The least that counts as a model with a chat template."""
    folder.mkdir(parents=True)
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "max_position_embeddings": 2048,
        "vocab_size": 100,
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    header = json.dumps(
        {"embed.weight": {"dtype": "F32", "shape": [100, 10], "data_offsets": [0, 4000]}}
    ).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(4000)
    (folder / "model.safetensors").write_bytes(weights)


@pytest.fixture
def model(dashboard, call_api: CallApi) -> Iterator[dict[str, Any]]:  # type: ignore[no-untyped-def]
    """A registered model; taken off the list afterwards."""
    folder = dashboard.data_root / "models" / "tiny"
    if not folder.exists():
        _write_model(folder)
    source = {"kind": "local", "path": "models/tiny"}
    made = call_api("POST", "/models", {"name": "tiny", "source": source})
    yield made
    call_api("DELETE", f"/models/{made['id']}")


@pytest.fixture
def dataset_file(tmp_path: Path) -> Path:
    """Questions and answers, enough for the smallest preset."""
    rows = [{"question": f"What is {n} + {n + 1}?", "answer": f"#### {2 * n + 1}"} for n in range(400)]
    path = tmp_path / "addition.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def dataset(dataset_file: Path, api: ApiClient) -> Iterator[dict[str, Any]]:
    """An uploaded dataset; deleted afterwards."""
    made = wait_for_dataset(api, api.upload("/datasets", dataset_file, {"name": "addition"})["id"])
    yield made
    api.delete(f"/datasets/{made['id']}")


@pytest.fixture
def odd_sums(api: ApiClient, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Questions whose answers stand under a column name that nobody expects; deleted afterwards."""
    rows = [{"question": f"What is {n} + 2?", "reply": f"#### {n + 2}"} for n in range(64)]
    path = tmp_path / "odd_sums.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    made = wait_for_dataset(api, api.upload("/datasets", path, {"name": "odd sums"})["id"])
    yield made
    api.delete(f"/datasets/{made['id']}")


@pytest.fixture
def tidy(call_api: CallApi, database: Database) -> Iterator[None]:
    """Ends and deletes every job, so that the next test finds an empty platform."""
    yield
    for job in call_api("GET", "/jobs?limit=200")["items"]:
        if job["can_stop"]:
            call_api("POST", f"/jobs/{job['id']}/stop")
        if job["state"] in ("launching", "running", "stopping"):
            with database.write() as session:
                service.settle(session, job_id=job["id"], attempt=job["attempt"], state=JobState.STOPPED)
        call_api("DELETE", f"/jobs/{job['id']}")


@pytest.fixture
def adopt(dashboard, database: Database) -> Callable[[str], ReportingJob]:  # type: ignore[no-untyped-def]
    """Makes a queued job report: (job id) -> the job, running."""

    def adopt_job(job_id: str) -> ReportingJob:
        job = ReportingJob(job_id, dashboard.url, database)
        job.start()
        return job

    return adopt_job


@pytest.fixture
def queue(
    model: dict[str, Any], dataset: dict[str, Any], call_api: CallApi, tidy: None
) -> Callable[..., Any]:
    """Queues a job over the API: (name, **fields) -> the job."""

    def queue_job(name: str, **fields: Any) -> Any:
        request = {"name": name, "recipe": "grpo", "model": model["id"], "dataset": dataset["id"], **fields}
        return call_api("POST", "/jobs", request)

    return queue_job


@pytest.fixture
def launch(queue: Callable[..., Any], adopt: Callable[[str], ReportingJob]) -> Callable[..., ReportingJob]:
    """Launches a job over the API and lets it report: (name, **fields) -> the job, running."""

    def launch_job(name: str, **fields: Any) -> ReportingJob:
        return adopt(queue(name, **fields)["id"])

    return launch_job
