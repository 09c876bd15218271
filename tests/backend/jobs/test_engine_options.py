"""Where free-form engine options enter: at each door, an option that would run code is refused."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model

KEY = "actor_rollout_ref.rollout.engine_kwargs.vllm.reasoning_parser_plugin"
#: What was tried: a file that was uploaded as a reward, loaded by the engine as a plugin.
ATTACK = {KEY: "/data/code_files/reward_0123456789ab.py"}


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    """A job that can run."""
    return {
        "name": "first",
        "recipe": "grpo",
        "preset": "cpu-tiny",
        "model": model.id,
        "dataset": dataset.id,
    }


def test_a_job_with_it_is_refused_with_the_reason(client: TestClient, body: dict[str, Any]) -> None:
    response = client.post("/api/v1/jobs", json={**body, "overrides": ATTACK})

    assert response.status_code == 422
    (issue,) = response.json()["details"]
    assert (issue["code"], issue["field"]) == ("option_refused", f"overrides.{KEY}")
    assert "code" in issue["message"]


def test_a_preview_of_it_says_so(client: TestClient, body: dict[str, Any]) -> None:
    preview = client.post("/api/v1/jobs/preview", json={**body, "overrides": ATTACK}).json()

    assert [issue["code"] for issue in preview["errors"]] == ["option_refused"]
    assert ATTACK[KEY] not in str([preview["engine_overrides"], preview["command"], preview["config"]])


def test_a_copy_cannot_add_it(client: TestClient, body: dict[str, Any]) -> None:
    job_id = client.post("/api/v1/jobs", json=body).json()["id"]

    response = client.post(f"/api/v1/jobs/{job_id}/clone", json={"overrides": ATTACK})

    assert response.status_code == 422
    assert response.json()["details"][0]["code"] == "option_refused"


def test_a_stage_of_a_pipeline_cannot_have_it(client: TestClient, body: dict[str, Any]) -> None:
    stage = {**body, "id": "rl", "kind": "train", "model": {"base": body["model"]}, "overrides": ATTACK}
    del stage["name"]

    response = client.post("/api/v1/job-pipelines", json={"name": "chain", "stages": [stage]})

    assert response.status_code == 422
    assert "option_refused" in response.text


def nest(levels: int, inside: Any = 1, *, in_lists: bool = False) -> Any:
    for _ in range(levels):
        inside = [inside] if in_lists else {"a": inside}
    return inside


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        ({f"key{number}": 1 for number in range(501)}, "more than 500 names"),
        ({"trainer": [{f"key{number}": 1} for number in range(501)]}, "more than 500 names"),
        ({"x" * 301: 1}, "more than 300 characters"),
        ({"x" * 200: {"y" * 200: 1}}, "more than 300 characters"),
        ({"actor_rollout_ref.model.override_config": nest(40)}, "32 levels deep"),
        ({"actor_rollout_ref.model.override_config": nest(900)}, "32 levels deep"),
        ({"actor_rollout_ref.model.override_config": nest(900, in_lists=True)}, "32 levels deep"),
    ],
    ids=["keys", "keys in a list", "long key", "long path", "deep", "very deep", "very deep lists"],
)
@pytest.mark.parametrize("field", ["overrides", "params"])
def test_more_than_an_engine_has_is_refused_before_it_is_compared(
    client: TestClient, body: dict[str, Any], field: str, choices: dict[str, Any], problem: str
) -> None:
    for path in ("/api/v1/jobs", "/api/v1/jobs/preview"):
        response = client.post(path, json={**body, field: choices})

        assert response.status_code == 422, response.text
        (issue,) = response.json()["details"]
        assert issue["field"] == field
        assert problem in issue["message"]


def test_an_evaluation_has_no_free_options(client: TestClient, body: dict[str, Any], model: Model) -> None:
    order = {"model": model.id, "benchmarks": [{"benchmark": "gsm8k", "engine_kwargs": ATTACK}]}

    evaluated = {**body, "evaluate": {"benchmarks": [{"benchmark": "gsm8k", "overrides": ATTACK}]}}

    answers = {
        "engine_kwargs": client.post("/api/v1/evaluations", json=order),
        "evaluate": client.post("/api/v1/jobs", json=evaluated),
    }

    for field, answer in answers.items():
        assert answer.status_code == 422
        assert field in answer.text
        assert "Extra inputs" in answer.text


def test_every_free_form_object_of_a_request_is_known(client: TestClient) -> None:
    """A new one that reaches an engine has to be checked as these are, and listed here."""
    schema = client.get("/api/v1/openapi.json").json()

    assert _free_form_objects(schema) == {
        # Checked by the recipes' composition.
        "JobClone.overrides",
        "JobClone.params",
        "JobCreate.overrides",
        "JobCreate.params",
        "StageCreate.overrides",
        "StageCreate.params",
        # Checked as a job's parameters and keys, into which they are turned; `config` and `rewards` are only
        # compared.
        "ManifestRequest.overrides",
        "ReplayManifest.config",
        "ReplayManifest.params",
        "ReplayManifest.rewards",
        # Checked against the kind, operator, tool or reward that they belong to; none reaches an engine.
        "EnvironmentCreate.parameters",
        "PipelineCheck.pipeline",
        "RewardTerm.options",
        "Step.params",
        "ToolCall.arguments",
        "ToolCallCreate.arguments",
        # JSON schemas within bounds (`endpoints.openai.grammar`), which a served engine is handed as data.
        "Function.parameters",
        "FunctionTool.parameters",
        "JsonSchema.schema",
        "ResponseSchema.schema",
        # Written into a row of a dataset, as text.
        "ConversationRow.tools",
        # Told by a run about itself.
        "ManifestEvent.manifest",
    }


def _free_form_objects(schema: dict[str, Any]) -> set[str]:
    """Objects in request bodies whose keys are not listed."""
    found: set[str] = set()
    seen: set[str] = set()

    def visit(node: Any, place: str) -> None:
        if isinstance(node, list):
            for each in node:
                visit(each, place)
        if not isinstance(node, dict):
            return
        if reference := node.get("$ref"):
            name = reference.rpartition("/")[2]
            if name not in seen:
                seen.add(name)
                visit(schema["components"]["schemas"][name], name)
            return
        if node.get("additionalProperties") is True or not node:
            found.add(place)
        for below in ("anyOf", "oneOf", "allOf", "items", "additionalProperties"):
            visit(node.get(below), place)
        for name, value in node.get("properties", {}).items():
            visit(value, f"{place}.{name}")

    for methods in schema["paths"].values():
        for operation in methods.values():
            if isinstance(operation, dict):
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    visit(content.get("schema"), "body")
    return found
