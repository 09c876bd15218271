"""Operators, checks and saved pipelines over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.models.models import Model
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_data.pipeline.document import load_pipeline

PIPELINES = "/api/v1/pipelines"
STEPS = [{"operator": "empty_answers"}, {"operator": "exact_duplicates"}]
CLEAN: dict[str, Any] = {"name": "clean", "steps": STEPS}


def check(client: TestClient, **request: Any) -> dict[str, Any]:
    answer = client.post(f"{PIPELINES}/validate", json=request)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def save(client: TestClient, pipeline: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = client.post(PIPELINES, json={"pipeline": pipeline, **more})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_operators_bring_what_their_forms_need(client: TestClient) -> None:
    found = {each["id"]: each for each in client.get(f"{PIPELINES}/operators").json()["items"]}

    threshold = found["minhash_duplicates"]["params_schema"]["properties"]["threshold"]
    assert len(found) == 22
    assert threshold["title_texts"].keys() == {"en", "zh"}
    assert found["minhash_duplicates"]["needs_all_rows"]
    assert not found["length"]["needs_all_rows"]
    assert found["length"]["title"]["zh"]
    assert found["length"]["params"] == found["length"]["params_schema"], "the old name, for one release"


def test_a_pipeline_that_fits_has_no_problems(client: TestClient, rows: dict[str, Any]) -> None:
    found = check(client, pipeline=CLEAN, dataset=rows["id"])

    assert found["problems"] == []
    assert load_pipeline(found["yaml"]).steps[0].operator == "empty_answers"
    assert len(found["hash"]) == 64


def test_yaml_and_document_mean_the_same(client: TestClient) -> None:
    by_document = check(client, pipeline=CLEAN)
    by_yaml = check(client, yaml=by_document["yaml"])

    assert by_yaml == by_document


@pytest.mark.parametrize(
    ("step", "field", "code"),
    [
        ({"operator": "no_such"}, "steps.0.operator", "operator_unknown"),
        ({"operator": "length", "params": {"wher": "all"}}, "steps.0.params.wher", "param_unknown"),
        (
            {"operator": "minhash_duplicates", "params": {"threshold": 7}},
            "steps.0.params.threshold",
            "param_invalid",
        ),
    ],
)
def test_wrong_steps_are_named_without_a_dataset(
    client: TestClient, step: dict[str, Any], field: str, code: str
) -> None:
    problems = check(client, pipeline={"name": "bad", "steps": [step]})["problems"]

    assert [(each["field"], each["code"]) for each in problems] == [(field, code)]


def test_columns_are_looked_for_in_the_dataset(client: TestClient, rows: dict[str, Any]) -> None:
    pipeline = {**CLEAN, "columns": {"prompt": "frage"}}

    problems = check(client, pipeline=pipeline, dataset=rows["id"])["problems"]

    assert problems[0]["field"] == "columns.prompt"
    assert problems[0]["code"] == "column_missing"


def test_every_problem_of_a_document_is_told(client: TestClient) -> None:
    problems = check(client, pipeline={"name": "", "steps": [], "colour": "red"})["problems"]

    assert {each["field"] for each in problems} == {"name", "steps", "colour"}


@pytest.mark.parametrize(
    "text",
    [
        "name: [",
        "- a\n- b",
        "name: a\nname: b\nsteps: [{operator: html}]",
        "a: &x [1]\nb: *x",
        "\x00",
        "steps: !!python/object/apply:os.system ['true']",
    ],
)
def test_yaml_that_is_no_pipeline_is_a_problem_and_not_an_error(client: TestClient, text: str) -> None:
    found = check(client, yaml=text)

    assert found["pipeline"] is None
    assert found["problems"]


@pytest.mark.parametrize(
    "value",
    [
        "\x00",
        10**30,
        {"a": [[[[["\x00"]]]]]},
    ],
)
def test_values_that_no_database_keeps_are_problems(client: TestClient, value: Any) -> None:
    pipeline = {"name": "odd", "steps": [{"operator": "html", "params": {"x": value}}]}

    found = check(client, pipeline=pipeline)
    kept = client.post(PIPELINES, json={"pipeline": pipeline})

    assert found["problems"][0]["code"] == "pipeline_invalid"
    assert kept.status_code == 422


@pytest.mark.parametrize("raw", [r'"\ud800"', "NaN", "[" * 300 + "]" * 300])
def test_odd_json_is_refused_in_words(client: TestClient, raw: str) -> None:
    body = f'{{"pipeline": {{"name": "odd", "steps": [{{"operator": "html", "params": {{"x": {raw}}}}}]}}}}'

    answer = client.post(PIPELINES, content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 422, answer.text


def test_a_pipeline_is_given_in_one_way(client: TestClient) -> None:
    neither = client.post(f"{PIPELINES}/validate", json={})
    both = client.post(f"{PIPELINES}/validate", json={"pipeline": CLEAN, "yaml": "name: x"})

    assert {neither.json()["error"], both.json()["error"]} == {"pipeline_missing"}


def test_the_tokenizer_is_a_model_whose_files_are_here(client: TestClient, model: Model) -> None:
    steps = [{"operator": "length", "params": {"unit": "tokens", "maximum": 5}}]

    found = check(client, pipeline={"name": "a", "steps": steps, "tokenizer": model.id})
    missing = check(client, pipeline={"name": "a", "steps": steps, "tokenizer": "mdl_aaaaaaaaaaaa"})
    outside = check(client, pipeline={"name": "a", "steps": steps, "tokenizer": "../../etc"})

    assert found["problems"] == []
    assert [each["field"] for each in missing["problems"]] == ["tokenizer"]
    assert outside["problems"][0]["code"] == "model_not_ready"


def test_a_step_may_name_only_judges_that_are_set_up(
    client: TestClient, settings: Settings, rows: dict[str, Any]
) -> None:
    pipeline = {"name": "judged", "steps": [{"operator": "judge", "params": {"scorer": "strict"}}]}

    without = check(client, pipeline=pipeline, dataset=rows["id"])["problems"]
    settings.judges["strict"] = JudgeEndpoint(base_url="http://judge.test/v1", model="m")
    found = check(client, pipeline=pipeline, dataset=rows["id"])["problems"]

    assert [each["code"] for each in without] == ["judge_unknown"]
    assert found == []


def test_a_resource_is_a_version_of_a_dataset(client: TestClient, rows: dict[str, Any]) -> None:
    steps = [{"operator": "decontaminate", "params": {"benchmarks": ["exam"]}}]
    exam = {"exam": {"dataset_id": rows["id"], "version": "main"}}
    gone = {"exam": {"dataset_id": "ds_aaaaaaaaaaaa", "version": "main"}}

    pipeline = {"name": "a", "steps": steps}
    found = check(client, pipeline=pipeline, dataset=rows["id"], resources=exam)["problems"]
    missing = check(client, pipeline=pipeline, dataset=rows["id"], resources=gone)["problems"]

    assert found == []
    assert missing[0]["field"] == "resources"
    assert missing[0]["code"] == "dataset_not_found"


def test_a_check_against_a_dataset_that_is_not_there_is_not_found(client: TestClient) -> None:
    answer = client.post(f"{PIPELINES}/validate", json={"pipeline": CLEAN, "dataset": "ds_aaaaaaaaaaaa"})

    assert (answer.status_code, answer.json()["error"]) == (404, "dataset_not_found")


def test_a_pipeline_is_kept_with_its_versions(client: TestClient) -> None:
    first = save(client, CLEAN, message="first")
    shorter = {**CLEAN, "steps": STEPS[:1], "description": "less"}
    second = client.post(
        f"{PIPELINES}/{first['id']}/versions", json={"pipeline": shorter, "message": "second"}
    ).json()

    history = client.get(f"{PIPELINES}/{first['id']}/versions").json()["items"]
    old = client.get(f"{PIPELINES}/{first['id']}", params={"version": 1}).json()
    assert (first["version"], second["version"]) == (1, 2)
    assert [each["message"] for each in history] == ["second", "first"]
    assert len(old["pipeline"]["steps"]) == 2
    assert second["hash"] != first["hash"]


def test_a_pipeline_that_does_the_same_makes_no_version(client: TestClient) -> None:
    kept = save(client, CLEAN, message="first")

    renamed = client.post(
        f"{PIPELINES}/{kept['id']}/versions",
        json={"pipeline": {**CLEAN, "name": "tidy", "description": "the same"}, "message": "renamed"},
    ).json()

    assert (renamed["version"], renamed["name"], renamed["message"]) == (1, "tidy", "first")
    assert renamed["pipeline"]["description"] == "the same"


def test_names_of_pipelines_are_taken_once(client: TestClient) -> None:
    save(client, CLEAN)
    other = save(client, {**CLEAN, "name": "other"})

    again = client.post(PIPELINES, json={"pipeline": CLEAN})
    renamed = client.post(f"{PIPELINES}/{other['id']}/versions", json={"pipeline": CLEAN})

    assert [(each.status_code, each.json()["error"]) for each in (again, renamed)] == [
        (409, "pipeline_name_taken")
    ] * 2


def test_a_pipeline_that_cannot_run_is_not_kept(client: TestClient) -> None:
    answer = client.post(PIPELINES, json={"pipeline": {"name": "bad", "steps": [{"operator": "no_such"}]}})

    assert answer.status_code == 422
    assert answer.json()["error"] == "pipeline_invalid"
    assert answer.json()["details"][0]["field"] == "steps.0.operator"


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "  "])
def test_odd_names_are_refused(client: TestClient, name: str) -> None:
    answer = client.post(PIPELINES, json={"pipeline": {**CLEAN, "name": name}})

    assert answer.status_code == 422, answer.text


def test_the_yaml_of_a_pipeline_is_what_the_command_line_reads(client: TestClient) -> None:
    kept = save(client, {**CLEAN, "name": "清洗 “x”"})

    answer = client.get(f"{PIPELINES}/{kept['id']}/yaml")

    assert load_pipeline(answer.text).name == "清洗 “x”"
    assert "attachment" in answer.headers["content-disposition"]


def test_pipelines_are_listed_in_pages(client: TestClient) -> None:
    names = [f"pipeline {number}" for number in range(3)]
    for name in names:
        save(client, {**CLEAN, "name": name})

    first = client.get(PIPELINES, params={"limit": 2}).json()
    rest = client.get(PIPELINES, params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [each["name"] for each in [*first["items"], *rest["items"]]] == names[::-1]
    assert rest["next_cursor"] is None


def test_a_forgotten_pipeline_is_gone(client: TestClient) -> None:
    kept = save(client, CLEAN)

    assert client.delete(f"{PIPELINES}/{kept['id']}").status_code == 204
    assert client.get(f"{PIPELINES}/{kept['id']}").json()["error"] == "pipeline_not_found"
    assert client.get(f"{PIPELINES}/{kept['id']}/versions").status_code == 404


@pytest.mark.parametrize("version", [2, 10**12])
def test_a_version_that_never_was_is_not_found(client: TestClient, version: int) -> None:
    kept = save(client, CLEAN)

    answer = client.get(f"{PIPELINES}/{kept['id']}", params={"version": version})

    assert (answer.status_code, answer.json()["error"]) == (404, "pipeline_version_not_found")


@pytest.mark.parametrize("pipeline_id", ["pip_aaaaaaaaaaaa", "x", "runs2"])
def test_unknown_pipelines_are_not_found(client: TestClient, pipeline_id: str) -> None:
    assert client.get(f"{PIPELINES}/{pipeline_id}").status_code == 404


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_a_pipeline_stored_with_old_parameter_names_is_shown_with_present_ones(client: TestClient) -> None:
    old = {
        "name": "old names",
        "steps": [{"operator": "repetition", "params": {"again_5": 0.2, "least_words": 9}}],
    }
    present = {"dup_5_gram_frac": 0.2, "min_words": 9}

    assert check(client, pipeline=old)["problems"] == []
    saved = save(client, old)

    assert saved["pipeline"]["steps"][0]["params"] == present
    assert client.get(f"{PIPELINES}/{saved['id']}").json()["pipeline"]["steps"][0]["params"] == present
