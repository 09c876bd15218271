"""``trellis.Client`` against the real API."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import trellis
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis import types
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

CODE = "async def workflow(task, model):\n    return 1.0\n"


@pytest.fixture
def platform(client: TestClient) -> trellis.Client:
    def forward(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        answer = client.request(
            request.method, path, content=request.read(), headers={**request.headers, "host": "testserver"}
        )
        return httpx.Response(answer.status_code, content=answer.content)

    token = client.headers["Authorization"].removeprefix("Bearer ")
    return trellis.Client("http://testserver", token, transport=httpx.MockTransport(forward))


def test_a_workflow_is_uploaded_and_a_job_submitted(
    platform: trellis.Client, tmp_path: Path, model: Model, dataset: Dataset
) -> None:
    (tmp_path / "agent.py").write_text(CODE)
    workflow = platform.workflows.upload(tmp_path / "agent.py")

    job = platform.jobs.submit(
        recipe="tune",
        preset="cpu-tiny",
        model=model.id,
        dataset=dataset.id,
        params={"workflow": workflow["id"]},
    )

    assert (workflow["name"], workflow["function"]) == ("agent", "workflow")
    assert platform.jobs.get(job["id"])["state"] == "queued"
    assert [each["id"] for each in platform.jobs.list()] == [job["id"]]
    assert platform.jobs.metrics(job["id"]) == {}
    assert [each["id"] for each in platform.datasets.list()] == [dataset.id]
    assert list(platform.evaluations.list()) == []
    with pytest.raises(TimeoutError, match="still queued"):
        platform.jobs.wait(job["id"], timeout_s=0)


def test_whatever_an_endpoint_answers_has_a_type_that_names_its_fields(
    platform: trellis.Client, model: Model, dataset: Dataset
) -> None:
    job = platform.jobs.submit(recipe="grpo", preset="cpu-tiny", model=model.id, dataset=dataset.id)

    answers = [
        (types.JobRead, job),
        (types.DatasetRead, platform.datasets.get(dataset.id)),
        (types.RecipeRead, platform.recipes.get("sft")),
        (types.RewardKindRead, platform.rewards.list()[0]),
        (types.BenchmarkRead, platform.benchmarks.list()[0]),
        (types.UserRead, platform.me()),
    ]

    for kind, answer in answers:
        assert kind.__required_keys__ <= set(answer) <= set(kind.__annotations__), kind  # type: ignore[attr-defined]
    assert platform.datasets.find(dataset.name)["id"] == dataset.id
    with pytest.raises(LookupError, match="no 'other' among datasets"):
        platform.datasets.find("other")
    with pytest.raises(trellis.ApiError, match="Did you mean 'state'") as caught:
        list(platform.jobs.list(stat="running"))
    assert caught.value.code == "unknown_query_parameter"


def test_a_job_is_previewed_cloned_and_read(platform: trellis.Client, model: Model, dataset: Dataset) -> None:
    order = {"recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}
    assert platform.jobs.preview(**order)["errors"] == []
    job = platform.jobs.submit(**order)

    assert platform.jobs.edit(job["id"], notes="why", add_tags=["maths"])["tags"] == ["maths"]
    assert [each["id"] for each in platform.jobs.list(tag="maths", sort="name", order="asc")] == [job["id"]]
    copy = platform.jobs.clone(job["id"])

    assert copy["id"] != job["id"]
    assert copy["recipe"] == "grpo"
    pair = [job["id"], copy["id"]]
    assert [each["id"] for each in platform.jobs.compare(pair)["jobs"]] == pair
    assert [run["series"] for run in platform.jobs.compare_curves(pair, ["loss"])["runs"]] == [[], []]
    assert platform.jobs.compare_evaluations(pair)["baseline"] == pair[0]
    assert [group["job_ids"] for group in platform.jobs.compare_seeds(pair)["groups"]] == [pair]
    assert list(platform.jobs.logs(job["id"])) == []
    assert list(platform.jobs.rollouts(job["id"])) == []
    assert list(platform.jobs.checkpoints(job["id"])) == []
    platform.jobs.stop(job["id"])
    assert list(platform.jobs.events(job["id"])) == []


def test_a_job_that_was_stopped_is_waited_for(
    platform: trellis.Client, model: Model, dataset: Dataset
) -> None:
    job = platform.jobs.submit(recipe="grpo", preset="cpu-tiny", model=model.id, dataset=dataset.id)
    platform.jobs.stop(job["id"])
    assert platform.jobs.wait(job["id"], timeout_s=5)["state"] == "stopped"
    assert platform.jobs.resume(job["id"])["state"] == "queued"


@pytest.mark.parametrize("state", ["succeeded", "failed", "crashed"])
def test_however_a_job_ends_it_is_waited_for(
    platform: trellis.Client, session: Session, model: Model, dataset: Dataset, state: str
) -> None:
    submitted = platform.jobs.submit(recipe="grpo", preset="cpu-tiny", model=model.id, dataset=dataset.id)
    job = session.get_one(Job, submitted["id"])
    job.state = JobState(state)
    session.flush()

    assert platform.jobs.wait(job.id, timeout_s=5)["state"] == state


def test_a_pipeline_is_submitted_stopped_and_started(
    platform: trellis.Client, model: Model, dataset: Dataset
) -> None:
    stage = {
        "id": "first",
        "kind": "train",
        "recipe": "grpo",
        "model": {"base": model.id},
        "dataset": dataset.id,
    }

    pipeline = platform.job_pipelines.submit("two steps", [stage])

    assert platform.job_pipelines.get(pipeline["id"])["state"] == "running"
    platform.job_pipelines.stop(pipeline["id"])
    assert platform.job_pipelines.wait(pipeline["id"], timeout_s=5)["state"] == "stopped"
    assert platform.job_pipelines.start(pipeline["id"])["state"] == "running"
    assert platform.datasets.wait(dataset.id, timeout_s=5)["state"] == "ready"


def test_a_sweep_is_previewed_submitted_stopped_and_gone_on_with(
    platform: trellis.Client, model: Model, dataset: Dataset
) -> None:
    job = {"recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}
    order: dict[str, Any] = {
        "parameters": {"learning_rate": {"values": [1e-6, 1e-5]}},
        "search": {"method": "grid"},
    }

    assert platform.sweeps.preview("rates", job, **order)["runs"] == 2
    sweep = platform.sweeps.submit("rates", job, **order)

    assert platform.sweeps.find("rates")["planned_runs"] == 2
    assert platform.sweeps.stop(sweep["id"])["state"] == "stopping"
    assert platform.sweeps.get(sweep["id"])["runs"] == []


def test_a_refusal_is_an_error_in_the_apis_words(platform: trellis.Client, model: Model) -> None:
    with pytest.raises(trellis.ApiError, match="not found") as caught:
        platform.jobs.submit(recipe="grpo", model=model.id, dataset="ds_aaaaaaaaaaab")
    assert caught.value.status in (404, 422)
    assert caught.value.code
    with pytest.raises(trellis.ApiError) as unknown:
        platform.jobs.get("job_aaaaaaaaaaaa")
    assert (unknown.value.status, unknown.value.code) == (404, "job_not_found")


def test_a_platform_that_does_not_answer_is_named() -> None:
    with pytest.raises(trellis.ApiError, match=r"127\.0\.0\.1:9.* does not answer"):
        trellis.Client("http://127.0.0.1:9", "token").jobs.get("job_x")
