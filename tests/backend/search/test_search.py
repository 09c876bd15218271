"""The search: anything with a name, found by words of its name or its id."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.datasets.models import Dataset
from trellis_api.endpoints.models import Endpoint
from trellis_api.evaluations.models import Evaluation
from trellis_api.job_pipelines.models import JobPipeline
from trellis_api.models.models import Model
from trellis_api.pipelines.models import SavedPipeline
from trellis_api.rewards.models import RewardFile
from trellis_contracts.states import JobState

MakeJob = Callable[..., str]


def find(client: TestClient, text: str = "", **params: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/search", params={"text": text} | params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def names(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["kind"], each["name"]) for each in found]


@pytest.mark.smoke
def test_everything_with_the_words_is_found(
    client: TestClient, database: Database, make_job: MakeJob, model: Model, dataset: Dataset
) -> None:
    training = make_job(name="Sums, GRPO", recipe="grpo", state=JobState.RUNNING)
    measuring = make_job(name="Evaluation of sums", kind="evaluate", state=JobState.SUCCEEDED)
    serving = make_job(name="Serving sums", kind="serve", state=JobState.FAILED)
    with database.write() as session:
        session.add(
            Evaluation(
                id="ev_aaaaaaaaaaaa", job_id=measuring, name="sums on gsm8k", target_kind="model",
                target_model_id=model.id, target_name=model.name, request={},
            )
        )  # fmt: skip
        session.add(Endpoint(id="ep_aaaaaaaaaaaa", job_id=serving, name="sums-7b", target_model_id=model.id))
        session.add(SavedPipeline(id="pl_aaaaaaaaaaaa", name="clean sums", version=1))
        session.add(JobPipeline(id="jpl_aaaaaaaaaaaa", name="sums, end to end"))
        session.add(
            RewardFile(id="rwf_aaaaaaaaaaaa", name="sums.py", code="pass", sha256="0" * 64, size_bytes=4)
        )

    found = find(client, "sums")

    kinds = [each["kind"] for each in found]
    assert kinds == ["job", "evaluation", "endpoint", "pipeline", "job_pipeline", "reward_file"]
    by_kind = {each["kind"]: each for each in found}
    assert (by_kind["job"]["id"], by_kind["job"]["state"], by_kind["job"]["detail"]) == (
        training,
        "running",
        "grpo",
    )
    assert (by_kind["evaluation"]["state"], by_kind["evaluation"]["detail"]) == ("succeeded", model.name)
    assert (by_kind["endpoint"]["id"], by_kind["endpoint"]["state"]) == ("sums-7b", "failed")
    assert names(find(client, dataset.id)) == [("dataset", dataset.name)]
    assert names(find(client, "grpo SUMS")) == [("job", "Sums, GRPO")]


def test_names_that_begin_with_the_text_come_first(client: TestClient, make_job: MakeJob) -> None:
    make_job(name="alpha one")
    make_job(name="beta alpha")
    make_job(name="gamma alpha")

    assert [name for _, name in names(find(client, "alpha", limit=2))] == ["alpha one", "gamma alpha"]


def test_the_prefix_of_all_ids_finds_none(client: TestClient, make_job: MakeJob) -> None:
    named = make_job(name="my job")
    others = [make_job(name=f"run {number}") for number in range(6)]

    found = client.get("/api/v1/search", params={"text": "job"}).json()["items"]

    assert [each["id"] for each in found if each["kind"] == "job"] == [named]
    by_id = client.get("/api/v1/search", params={"text": others[0]}).json()["items"]
    assert [each["id"] for each in by_id] == [others[0]]


def test_signs_of_patterns_are_letters(client: TestClient, make_job: MakeJob) -> None:
    make_job(name="50% of the rows")
    make_job(name="500 rows")

    assert names(find(client, "50%")) == [("job", "50% of the rows")]
    assert find(client, "_") == []
    assert find(client, "no such thing") == []


def test_without_a_text_the_newest_are_listed(client: TestClient, make_job: MakeJob) -> None:
    for number in range(7):
        make_job(name=f"job {number}")

    assert names(find(client)) == [("job", f"job {number}") for number in (6, 5, 4, 3, 2)]


def test_the_search_is_bounded_and_for_users(client: TestClient) -> None:
    assert client.get("/api/v1/search", params={"text": "x" * 201}).status_code == 422
    assert client.get("/api/v1/search", params={"text": "\x00"}).status_code == 422
    assert client.get("/api/v1/search", params={"limit": 21}).status_code == 422
    del client.headers["Authorization"]
    assert client.get("/api/v1/search").status_code == 401
