"""A script of verl's over the API: what it becomes, and that what comes back can be launched."""

from fastapi.testclient import TestClient
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model

SCRIPT = """
rollouts=4
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
    data.train_files=$HOME/train.parquet actor_rollout_ref.model.path=$HOME/model \\
    actor_rollout_ref.rollout.n=$rollouts actor_rollout_ref.rollout.name=vllm \\
    data.shuffle=False trainer.logger=console trainer.n_gpus_per_node=1 trainer.experiment_name=first $@
"""


def test_a_script_becomes_a_request_that_can_be_launched(
    client: TestClient, model: Model, dataset: Dataset
) -> None:
    response = client.post("/api/v1/jobs/import-script", json={"script": SCRIPT})

    assert response.status_code == 200, response.text
    found = response.json()
    assert (found["recipe"], found["name"], found["gpus"]) == ("grpo", "first", 1)
    assert found["params"]["group_size"] == 4
    assert found["overrides"]["data.shuffle"] is False
    assert [each["setting"] for each in found["left_out"]] == ["trainer.logger"]
    request = {name: found[name] for name in ("name", "recipe", "params", "overrides")}
    launched = client.post("/api/v1/jobs", json={**request, "model": model.id, "dataset": dataset.id})
    assert launched.status_code == 201, launched.text


def test_a_text_that_starts_nothing_of_verl_is_refused_with_what_is_missing(client: TestClient) -> None:
    response = client.post("/api/v1/jobs/import-script", json={"script": "echo hello"})

    assert response.status_code == 422
    error = response.json()
    assert error["error"] == "unreadable_script"
    assert "verl.trainer.main_ppo" in error["message"]


def test_reading_a_script_needs_a_token(client: TestClient) -> None:
    response = client.post(
        "/api/v1/jobs/import-script", json={"script": SCRIPT}, headers={"Authorization": "Bearer no"}
    )

    assert response.status_code == 401
