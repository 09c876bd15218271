"""Rows of versions: pages, search, download, statistics, tokens."""

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from trellis_api.models.models import Model
from trellis_testing.uploads import DATASETS, ROWS, Finish, Upload, as_lines, rows_of

MANY = [{"question": f"What is {n}?", "answer": f"It is {n}.", "level": n % 7} for n in range(2500)]
NESTED = [
    {"messages": [{"role": "user", "content": "你好, =1+1"}], "n": 1, "ok": True, "note": None},
    {"messages": [{"role": "user", "content": 'say "hi"\n'}], "n": 2, "ok": False, "note": "x"},
]


def search(client: TestClient, dataset: dict[str, Any], **request: Any) -> Any:
    return client.post(f"{DATASETS}/{dataset['id']}/rows/search", json=request)


def download(client: TestClient, dataset: dict[str, Any], **params: Any) -> Any:
    return client.get(f"{DATASETS}/{dataset['id']}/download", params=params)


@pytest.mark.parametrize(("offset", "limit"), [(0, 1), (1020, 10), (2495, 50), (2500, 5), (2**62, 5)])
def test_a_page_of_rows_is_read(client: TestClient, upload: Upload, offset: int, limit: int) -> None:
    dataset = upload(as_lines(MANY))

    answer = client.get(f"{DATASETS}/{dataset['id']}/rows", params={"offset": offset, "limit": limit}).json()

    assert answer["rows"] == MANY[offset : offset + limit]
    assert (answer["offset"], answer["row_count"], answer["split"]) == (offset, 2500, "train")
    assert answer["version"] == dataset["head"]
    assert answer["columns"] == dataset["columns"]


@pytest.mark.parametrize(
    ("params", "status", "error"),
    [
        ({"version": "nothing"}, 404, "version_not_found"),
        ({"version": "0" * 64}, 404, "version_not_found"),
        ({"version": "../../x"}, 404, "version_not_found"),
        ({"split": "nothing"}, 404, "split_not_found"),
        ({"offset": -1}, 422, "invalid_request"),
        ({"offset": 2**63}, 422, "invalid_request"),
        ({"limit": 0}, 422, "invalid_request"),
        ({"limit": 201}, 422, "invalid_request"),
    ],
)
def test_a_page_that_is_not_there(
    client: TestClient, upload: Upload, params: dict[str, Any], status: int, error: str
) -> None:
    dataset = upload()
    for place in ("rows", "download"):
        if place == "download" and status == 422:
            continue
        answer = client.get(f"{DATASETS}/{dataset['id']}/{place}", params=params)
        assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_rows_are_found_by_text_and_conditions(client: TestClient, upload: Upload) -> None:
    dataset = upload(as_lines(MANY))

    by_text = search(client, dataset, text="what IS 12").json()
    both = search(
        client,
        dataset,
        text="24",
        conditions=[{"column": "level", "operator": "eq", "value": 3}],
        limit=2,
    ).json()
    rest = search(
        client,
        dataset,
        text="24",
        conditions=[{"column": "level", "operator": "eq", "value": 3}],
        cursor=both["next_cursor"],
        limit=200,
    ).json()

    assert by_text["positions"] == [n for n in range(2500) if str(n).startswith("12")][:50]
    assert by_text["rows"][0] == MANY[12]
    wanted = [n for n in range(2500) if n % 7 == 3 and "24" in str(n)]
    assert both["positions"] + rest["positions"] == wanted
    assert (both["row_count"], rest["next_cursor"]) == (2500, None)


@pytest.mark.parametrize(
    "condition",
    [
        {"column": "nothing", "operator": "eq", "value": 1},
        {"column": "level", "operator": "eq", "value": "many"},
        {"column": "level", "operator": "contains", "value": "1"},
        {"column": "level", "operator": "lt", "value": 2**80},
        {"column": "question", "operator": "gt", "value": 3},
    ],
)
def test_a_search_that_cannot_be_done_is_refused(
    client: TestClient, upload: Upload, condition: dict[str, Any]
) -> None:
    fits = {"column": "level", "operator": "eq", "value": 1}
    answer = search(client, upload(as_lines(MANY[:10])), conditions=[fits, condition])

    assert (answer.status_code, answer.json()["error"]) == (422, "search_unfit")
    part = "column" if condition["column"] == "nothing" else "value"
    assert answer.json()["details"][0]["field"] == f"conditions.1.{part}"


@pytest.mark.parametrize("value", ["(a|b", "", "数学", "\\d", "%", "' OR 1=1"])
def test_what_is_looked_for_is_taken_as_it_stands(client: TestClient, upload: Upload, value: str) -> None:
    dataset = upload(
        as_lines([{"question": f"a {value} b", "answer": "c"}, {"question": "d", "answer": "e"}])
    )

    by_text = search(client, dataset, text=value).json()
    conditions = [{"column": "question", "operator": "contains", "value": value}]
    by_condition = search(client, dataset, conditions=conditions).json()

    assert by_text["positions"] == by_condition["positions"] == ([0] if value else [0, 1])


def test_a_split_is_downloaded_as_json_lines(client: TestClient, upload: Upload) -> None:
    dataset = upload(as_lines(MANY), name='数学 / "sums"')

    answer = download(client, dataset)

    assert [json.loads(line) for line in answer.content.splitlines()] == MANY
    assert answer.headers["Content-Type"] == "application/jsonl"
    told = answer.headers["Content-Disposition"]
    assert told.startswith('attachment; filename="')
    assert "filename*=UTF-8''%E6%95%B0%E5%AD%A6%20_%20_sums_-train-" in told
    assert told.isascii()


def test_a_split_is_downloaded_as_csv(client: TestClient, upload: Upload) -> None:
    answer = download(client, upload(as_lines(NESTED)), form="csv")

    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert [json.loads(row["messages"]) for row in rows] == [row["messages"] for row in NESTED]
    assert [(row["n"], row["ok"], row["note"]) for row in rows] == [("1", "true", ""), ("2", "false", "x")]


def test_a_split_is_downloaded_as_parquet(client: TestClient, upload: Upload) -> None:
    many = download(client, upload(as_lines(MANY)), form="parquet")
    nested = download(client, upload(as_lines(NESTED), "nested.jsonl"), form="parquet")

    assert pq.read_table(io.BytesIO(many.content)).to_pylist() == MANY
    assert pq.read_table(io.BytesIO(nested.content)).to_pylist() == NESTED


def test_what_was_downloaded_can_be_uploaded(client: TestClient, upload: Upload) -> None:
    dataset = upload(as_lines(MANY))

    for form in ("jsonl", "csv", "parquet"):
        again = upload(download(client, dataset, form=form).content, f"again.{form}")
        assert rows_of(client, again, limit=200) == MANY[:200]


def test_another_form_is_refused(client: TestClient, upload: Upload) -> None:
    assert download(client, upload(), form="xlsx").status_code == 422


def test_statistics_come_with_a_version(client: TestClient, upload: Upload) -> None:
    dataset = upload()

    found = client.get(f"{DATASETS}/{dataset['id']}/statistics").json()

    assert (found["version"], found["model"], found["task"]) == (dataset["head"], None, None)
    assert found["statistics"]["rows"] == len(ROWS)


def test_statistics_are_computed_once_for_all_who_ask(
    client: TestClient, upload: Upload, finish: Finish
) -> None:
    dataset = upload()
    place = f"{DATASETS}/{dataset['id']}/statistics"

    first, second = (client.post(place, json={}) for _ in range(2))
    waiting = client.get(place).json()
    finish()
    done = client.get(place).json()

    assert first.status_code == 202
    assert first.json()["id"] == second.json()["id"] == waiting["task"]["id"]
    assert done["task"]["state"] == "succeeded"
    assert done["statistics"]["rows"] == len(ROWS)


def test_statistics_that_are_there_are_not_computed_again(
    client: TestClient, upload: Upload, finish: Finish, model: Model
) -> None:
    dataset = upload()
    place = f"{DATASETS}/{dataset['id']}/statistics"
    first = client.post(place, json={}).json()
    finish()

    again = client.post(place, json={})
    other = client.post(place, json={"model": model.id}).json()
    anew = client.post(place, json={}, params={"refresh": True}).json()

    assert (again.status_code, again.json()["id"], again.json()["state"]) == (202, first["id"], "succeeded")
    assert again.json()["result"]["rows"] == len(ROWS)
    assert len({first["id"], other["id"], anew["id"]}) == 3
    assert anew["state"] == "queued"


def test_the_old_name_of_refresh_is_accepted_as_deprecated(
    client: TestClient, upload: Upload, finish: Finish
) -> None:
    place = f"{DATASETS}/{upload()['id']}/statistics"
    first = client.post(place, json={})
    finish()

    again = client.post(place, json={}, params={"anew": True})

    assert again.json()["id"] != first.json()["id"]
    assert again.headers["Deprecation"].startswith("@")
    assert "Deprecation" not in first.headers
    described = client.get("/api/v1/openapi.json").json()["paths"]["/api/v1/datasets/{dataset_id}/statistics"]
    flags = {each["name"]: each.get("deprecated", False) for each in described["post"]["parameters"]}
    assert flags == {"dataset_id": False, "refresh": False, "anew": True}


def test_a_model_that_is_not_there_counts_no_tokens(client: TestClient, upload: Upload) -> None:
    dataset = upload()
    body = {"model": "mdl_aaaaaaaaaaaa"}

    for place in ("statistics", "rows/tokens"):
        answer = client.post(f"{DATASETS}/{dataset['id']}/{place}", json=body)
        assert (answer.status_code, answer.json()["error"]) == (409, "model_not_ready")


def test_tokens_are_a_task(client: TestClient, upload: Upload, model: Model) -> None:
    dataset = upload()

    answer = client.post(
        f"{DATASETS}/{dataset['id']}/rows/tokens", json={"model": model.id, "offset": 2, "limit": 3}
    )
    unknown = client.post(
        f"{DATASETS}/{dataset['id']}/rows/tokens", json={"model": model.id, "split": "nothing"}
    )

    assert answer.status_code == 202
    assert (answer.json()["kind"], answer.json()["version"]) == ("tokens", dataset["head"])
    assert unknown.json()["error"] == "split_not_found"
