"""``trellis.Client`` against the real API."""

from pathlib import Path

import httpx
import pytest
import trellis
from fastapi.testclient import TestClient
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model

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


def test_a_job_that_was_stopped_is_waited_for(
    platform: trellis.Client, model: Model, dataset: Dataset
) -> None:
    job = platform.jobs.submit(recipe="grpo", preset="cpu-tiny", model=model.id, dataset=dataset.id)
    platform.jobs.stop(job["id"])
    assert platform.jobs.wait(job["id"], timeout_s=5)["state"] in ("stopped", "cancelled")


def test_a_refusal_is_an_error_in_the_apis_words(platform: trellis.Client, model: Model) -> None:
    with pytest.raises(trellis.ApiError, match="There is no") as caught:
        platform.jobs.submit(recipe="grpo", model=model.id, dataset="ds_aaaaaaaaaaab")
    assert caught.value.status in (404, 422)
    assert caught.value.code
    with pytest.raises(trellis.ApiError) as unknown:
        platform.jobs.get("job_aaaaaaaaaaaa")
    assert (unknown.value.status, unknown.value.code) == (404, "job_not_found")


def test_a_platform_that_does_not_answer_is_named() -> None:
    with pytest.raises(trellis.ApiError, match=r"127\.0\.0\.1:9.* does not answer"):
        trellis.Client("http://127.0.0.1:9", "token").jobs.get("job_x")
