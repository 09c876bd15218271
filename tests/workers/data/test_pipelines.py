"""Runs of pipelines as data tasks: new versions, new datasets, only a report; splits; what stays."""

from typing import Any

import pytest

from .conftest import CLEAN, ROWS


def test_the_rows_become_the_next_version(platform: Any, dataset: dict[str, Any]) -> None:
    run = platform.start_run(dataset["id"], output={"kind": "version", "message": "Cleaned"})
    platform.finish()

    task = platform.task(run)
    assert task["state"] == "succeeded", task
    after = platform.get(f"/datasets/{dataset['id']}")
    assert after["row_count"] == len(ROWS) - 2
    assert after["head"] == task["made_version"] != dataset["head"]
    assert after["warnings"] == []
    newest, first = platform.get(f"/datasets/{dataset['id']}/versions")["items"]
    assert (newest["message"], newest["origin"], newest["task"]) == ("Cleaned", "pipeline", run)
    assert newest["parents"] == [first["id"]] == [dataset["head"]]
    report = platform.get(f"/pipelines/runs/{run}")["report"]
    assert [bar["rows"] for bar in report["funnel"]] == [len(ROWS), len(ROWS) - 1, len(ROWS) - 2]
    # What was dropped can be looked at; the rows themselves lie in the store alone.
    dropped = platform.get(f"/pipelines/runs/{run}/steps/0/dropped")
    assert dropped["row_count"] == 1
    assert not (platform.folder(run) / "run" / "output").exists()


def test_the_rows_become_a_dataset_of_their_own(platform: Any, dataset: dict[str, Any]) -> None:
    run = platform.start_run(dataset["id"], output={"kind": "dataset", "name": "cleaned"})
    made = next(each for each in platform.get("/datasets")["items"] if each["name"] == "cleaned")
    assert made["state"] == "creating"
    platform.finish()

    after = platform.get(f"/datasets/{made['id']}")
    assert (after["state"], after["row_count"]) == ("ready", len(ROWS) - 2)
    task = platform.task(run)
    assert (task["made_dataset"], task["made_version"]) == (made["id"], after["head"])
    assert platform.get(f"/datasets/{dataset['id']}")["head"] == dataset["head"]
    version = platform.get(f"/datasets/{made['id']}/versions/{after['head']}")
    assert version["parents"] == []
    assert version["provenance"]["inputs"] == [dataset["head"]]


def test_a_new_branch_begins_where_the_rows_came_from(platform: Any, dataset: dict[str, Any]) -> None:
    platform.start_run(dataset["id"], output={"kind": "version", "branch": "try"})
    platform.finish()

    refs = platform.get(f"/datasets/{dataset['id']}/refs")["branches"]
    tips = {ref["name"]: ref["version"] for ref in refs}
    assert tips["main"] == dataset["head"] != tips["try"]
    version = platform.get(f"/datasets/{dataset['id']}/versions/{tips['try']}")
    assert version["parents"] == [dataset["head"]]


def test_a_report_alone_changes_nothing(platform: Any, dataset: dict[str, Any]) -> None:
    objects = platform.list_objects()
    run = platform.start_run(dataset["id"], output={"kind": "none"})
    platform.finish()

    task = platform.task(run)
    assert (task["state"], task["made_version"]) == ("succeeded", None)
    assert platform.get(f"/datasets/{dataset['id']}")["head"] == dataset["head"]
    assert platform.list_objects() == objects


def test_rows_that_stay_as_they_were_make_no_version(platform: Any, dataset: dict[str, Any]) -> None:
    nothing = {"name": "nothing", "steps": [{"operator": "normalise_text"}]}
    run = platform.start_run(dataset["id"], nothing)
    platform.finish()

    assert platform.task(run)["state"] == "succeeded", platform.task(run)
    assert len(platform.get(f"/datasets/{dataset['id']}/versions")["items"]) == 1
    assert platform.get(f"/datasets/{dataset['id']}")["head"] == dataset["head"]


@pytest.fixture
def parted(platform: Any) -> dict[str, Any]:
    """A dataset with two splits, between which a row is repeated."""
    folder = platform.settings.data_root / "mine"
    folder.mkdir()
    import json

    for name, rows in (("train", ROWS[:20]), ("test", [*ROWS[20:], ROWS[0]])):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    made = platform.post("/datasets/imports", {"source": {"kind": "path", "path": "mine"}}, 201)
    platform.finish()
    return dict(platform.get(f"/datasets/{made['id']}"))


def test_splits_stay_apart_and_are_compared_with_each_other(platform: Any, parted: dict[str, Any]) -> None:
    platform.start_run(parted["id"])
    platform.finish()

    after = platform.get(f"/datasets/{parted['id']}")
    # The repeated row goes from the split that came later, with the one without an answer.
    assert after["splits"]["train"] + after["splits"]["test"] == len(ROWS) - 2
    assert [column["name"] for column in after["columns"]] == ["prompt", "answer"]
    rows = platform.get(f"/datasets/{parted['id']}/rows", split="test", limit=200)["rows"]
    assert set(map(str, rows)) <= set(map(str, ROWS[20:] + ROWS[:1]))


def test_one_split_alone(platform: Any, parted: dict[str, Any]) -> None:
    platform.start_run(parted["id"], splits=["test"], output={"kind": "dataset", "name": "test only"})
    platform.finish()

    made = next(each for each in platform.get("/datasets")["items"] if each["name"] == "test only")
    assert list(made["splits"]) == ["test"]


def test_a_pipeline_that_drops_all_rows_fails_and_says_so(platform: Any, dataset: dict[str, Any]) -> None:
    strict = {
        "name": "strict",
        "steps": [{"operator": "length", "params": {"unit": "characters", "minimum": 100_000}}],
    }
    run = platform.start_run(dataset["id"], strict)
    platform.finish()

    task = platform.task(run)
    assert (task["state"], task["cause"]) == ("failed", "no_rows_left"), task
    assert platform.get(f"/datasets/{dataset['id']}")["head"] == dataset["head"]


def test_statistics_and_differences(platform: Any, dataset: dict[str, Any]) -> None:
    platform.start_run(dataset["id"])
    platform.finish()
    after = platform.get(f"/datasets/{dataset['id']}")["head"]

    platform.post(f"/datasets/{dataset['id']}/statistics", {"version": after})
    platform.post(f"/datasets/{dataset['id']}/diff", {"before": dataset["head"], "after": after})
    platform.finish()

    found = platform.get(f"/datasets/{dataset['id']}/statistics", version=after)
    assert found["statistics"]["rows"] == len(ROWS) - 2
    assert found["statistics"]["duplicates"] == 0
    difference = platform.get(f"/datasets/{dataset['id']}/diff", before=dataset["head"], after=after)
    assert (difference["total"]["removed"], difference["total"]["added"]) == (2, 0)


def test_a_preview_shows_what_happens_to_each_row(platform: Any, dataset: dict[str, Any]) -> None:
    body = {"pipeline": CLEAN, "dataset": dataset["id"], "rows": 200}
    task = platform.post("/pipelines/preview", body)
    platform.finish()

    found = platform.task(task["id"])
    assert found["state"] == "succeeded", found
    assert (found["result"]["rows_in"], found["result"]["rows_out"]) == (len(ROWS), len(ROWS) - 2)
    assert not platform.folder(task["id"]).exists()
