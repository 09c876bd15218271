"""Pipelines of jobs as YAML: names become ids, and each problem is told with its line."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.job_pipelines import documents
from trellis_api.job_pipelines.schemas import MAX_STAGES
from trellis_api.models.models import Model
from trellis_testing.datasets import add_dataset

TEXT = """\
name: reasoning
stages:
  - id: sft
    recipe: grpo
    preset: cpu-tiny
    dataset: {dataset}
    model: {{base: {model}}}
  - id: rl
    recipe: grpo
    preset: cpu-tiny
    dataset: {dataset}
    model:
      stage: sft
"""


@pytest.fixture
def text(model: Model, dataset: Dataset) -> str:
    return TEXT.format(model=model.name, dataset=dataset.name)


def check(client: TestClient, text: str) -> Any:
    answer = client.post("/api/v1/job-pipelines/check", json={"yaml": text})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_models_and_datasets_go_by_name_and_what_comes_back_can_be_created(
    client: TestClient, text: str, model: Model, dataset: Dataset
) -> None:
    found = check(client, text)

    assert found["problems"] == []
    first = found["document"]["stages"][0]
    assert (first["model"]["base"], first["dataset"]) == (model.id, dataset.id)
    assert client.get("/api/v1/job-pipelines").json()["items"] == []
    made = client.post("/api/v1/job-pipelines", json={**found["document"], "start": False})
    assert made.status_code == 201, made.text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: reasoning", "name: [", ("not_yaml", "", 3)),
        ("name: reasoning", "name: a\nname: b", ("not_yaml", "", 2)),
        ("stage: sft", "stage: stf", ("unknown_stage", "stages.1.model.stage", 13)),
        ("    recipe: grpo", "    recipe: grop", ("unknown_recipe", "stages.0.recipe", 4)),
        ("      stage: sft", "      base: nobody", ("unknown_model", "stages.1.model", 12)),
        ("    preset: cpu-tiny\n", "    colour: red\n", ("invalid_value", "stages.0.colour", 5)),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(
    client: TestClient, text: str, old: str, new: str, expected: tuple[str, str, int]
) -> None:
    found = check(client, text.replace(old, new, 1))

    assert found["document"] is None
    first = found["problems"][0]
    assert (first["code"], first["field"], first["line"]) == expected


#: What a database cannot keep, and half of a surrogate pair, which no answer can be written with either.
UNSTORABLE = [r'"a\0b"', r'"\ud800"']


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "3", "name: x\nstages: 1", "stages: [1, {}]", "a: &a [*a]",
        *(f"name: x\nstages: [{{dataset: {each}, model: {{base: {each}}}}}]" for each in UNSTORABLE),
        *(f"name: {each}\n{each}: 1\nstages: []" for each in UNSTORABLE),
        *(f"{each}: 1\n{each}: 2" for each in UNSTORABLE),
    ],
)  # fmt: skip
def test_what_is_no_pipeline_is_said(client: TestClient, text: str) -> None:
    found = check(client, text)

    assert found["document"] is None
    assert found["problems"]


@pytest.mark.parametrize("written", UNSTORABLE)
def test_a_name_that_cannot_be_kept_is_refused_with_its_line(
    client: TestClient, text: str, dataset: Dataset, written: str
) -> None:
    found = check(client, text.replace(f"dataset: {dataset.name}", f"dataset: {written}", 1))

    first = found["problems"][0]
    assert (first["code"], first["field"], first["line"]) == ("invalid_value", "stages.0.dataset", 6)


def test_an_id_wins_over_a_name(
    client: TestClient, database: Database, model: Model, dataset: Dataset
) -> None:
    with database.write() as session:
        row = session.get(Model, model.id)
        assert row is not None
        fields = row.model_dump(exclude={"id", "name"})
        # Called as another is identified.
        session.add(Model(id="mdl_bbbbbbbbbbbb", name=model.id, **fields))
        shadow = session.get(Dataset, dataset.id)
        assert shadow is not None
        fields = shadow.model_dump(exclude={"id", "name"})
        session.add(Dataset(id="ds_bbbbbbbbbbbb", name=dataset.id, **fields))

    by_id = check(client, TEXT.format(model=model.id, dataset=dataset.id))["document"]["stages"][0]
    assert (by_id["model"]["base"], by_id["dataset"]) == (model.id, dataset.id)


def test_a_name_of_several_is_told_with_its_line_and_the_candidates(
    client: TestClient, database: Database, settings: Settings, text: str, dataset: Dataset
) -> None:
    with database.write() as session:
        twins = [add_dataset(session, settings, name=name).id for name in ("Sums", "sums")]

    found = check(client, text.replace(f"dataset: {dataset.name}", "dataset: SUMS", 1))

    (problem,) = found["problems"]
    assert (problem["code"], problem["field"], problem["line"]) == ("ambiguous_name", "stages.0.dataset", 6)
    assert all(each in problem["message"] for each in twins)


def test_benchmarks_of_ones_own_name_their_dataset_too(
    client: TestClient, text: str, dataset: Dataset
) -> None:
    order = f"{{benchmark: custom, dataset: {dataset.name}, scorer: {{kind: exact}}}}"
    stage = f"  - {{id: test, kind: evaluate, model: {{stage: rl}}, benchmarks: [{order}]}}\n"

    found = check(client, text + stage)

    assert found["problems"] == []
    assert found["document"]["stages"][2]["benchmarks"][0]["dataset"] == dataset.id


def test_no_name_is_looked_up_for_more_stages_than_a_pipeline_has(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(documents, "find_id", lambda _session, _kind, name, **_: asked.append(name))

    found = check(client, "name: x\nstages:\n" + "- {dataset: rows}\n" * (MAX_STAGES + 1))

    assert [each["field"] for each in found["problems"]] == ["stages"]
    assert asked == []
