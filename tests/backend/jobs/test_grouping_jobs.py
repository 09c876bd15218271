"""The list of jobs in groups: every group whole, with its number of jobs, and an order of its own within."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import service
from trellis_api.jobs.fields.grouping import JobGrouping
from trellis_api.jobs.fields.sorting import JobSort
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.models.models import Model
from trellis_api.sweeps.models import Sweep
from trellis_contracts.states import JobState

LOSS = "val/loss"
MODEL, DATASET, OTHER_DATASET = "mdl_aaaaaaaaaaaa", "ds_aaaaaaaaaaaa", "ds_bbbbbbbbbbbb"


@pytest.fixture
def runs(database: Database, make_job: Callable[..., str]) -> dict[str, str]:
    """Five trainings of two recipes, with their losses, tags and sweeps; by name their IDs."""
    now = utc_now()
    made: dict[str, str] = {}
    for place, (name, recipe, loss, tags) in enumerate(
        [
            ("a", "sft", 3.0, ("y", "x")),
            ("b", "grpo", 1.0, ("x",)),
            ("c", "sft", 1.0, ()),
            ("d", "grpo", 2.0, ("z",)),
            ("e", "sft", 2.0, ("x", "z")),
        ]
    ):
        state = JobState.RUNNING if name == "e" else JobState.SUCCEEDED
        made[name] = make_job(
            name=name, recipe=recipe, tags=tags, state=state, created_at=now + timedelta(minutes=place)
        )
        with database.write() as session:
            job = service.get_locked_job(session, job_id=made[name])
            metric_store.write(session, job=job, metrics=[(1, {LOSS: loss})])
    with database.write() as session:
        # Two sweeps of one name are two groups.
        for sweep, names in (("swp_a", "ac"), ("swp_b", "e")):
            session.add(Sweep(id=sweep, name="rates", recipe="sft", document={}))
            session.flush()
            for name in names:
                service.get_locked_job(session, job_id=made[name]).sweep_id = sweep
    return made


def read(client: TestClient, limit: int = 2, **params: Any) -> tuple[str, dict[str | None, int]]:
    """Read all pages; returns the names in their order and the counts of the groups."""
    names, counts, cursor = "", {}, None
    while True:
        asked = {**params, "limit": limit, **({"cursor": cursor} if cursor else {})}
        response = client.get("/api/v1/jobs", params=asked)
        assert response.status_code == 200, response.text
        page = response.json()
        names += "".join(job["name"] for job in page["items"])
        counts |= {group["value"]: group["count"] for group in page["groups"]}
        cursor = page["next_cursor"]
        if cursor is None:
            return names, counts


def test_groups_are_whole_and_sorted_within(client: TestClient, runs: dict[str, str]) -> None:
    by_loss = {"sort": "metric_last", "metric": LOSS}

    assert read(client, group_by="recipe", order="asc", **by_loss) == ("bdcea", {"grpo": 2, "sft": 3})
    assert read(client, group_by="recipe", order="desc", **by_loss)[0] == "dbaec"
    assert read(client, group_by="recipe")[0] == "dbeca"


def test_a_job_is_in_the_group_of_its_first_tag(client: TestClient, runs: dict[str, str]) -> None:
    assert read(client, group_by="tags", sort="name", order="asc") == ("abedc", {"x": 3, "z": 1, None: 1})


def test_groups_of_one_name_stay_apart(client: TestClient, runs: dict[str, str]) -> None:
    names, counts = read(client, group_by="sweep", sort="name", order="asc")

    assert (names, counts) == ("acebd", {"swp_a": 2, "swp_b": 1, None: 2})


def test_states_come_in_the_order_of_a_life(client: TestClient, runs: dict[str, str]) -> None:
    assert read(client, group_by="state", sort="name", order="asc") == (
        "eabcd",
        {"running": 1, "succeeded": 4},
    )


def test_counts_are_of_what_matches_the_filters(client: TestClient, runs: dict[str, str]) -> None:
    assert read(client, group_by="recipe", tag="x")[1] == {"sft": 2, "grpo": 1}


@pytest.mark.parametrize("grouping", sorted(JobGrouping))
@pytest.mark.parametrize("sort", sorted(JobSort))
def test_pages_neither_repeat_nor_miss_a_job(
    client: TestClient, runs: dict[str, str], grouping: str, sort: str
) -> None:
    names, counts = read(client, group_by=grouping, sort=sort, metric=LOSS)

    assert sorted(names) == sorted(runs)
    assert sum(counts.values()) == len(runs)


def test_a_cursor_of_another_grouping_is_refused(client: TestClient, runs: dict[str, str]) -> None:
    asked = {"group_by": "recipe", "limit": 1}
    cursor = client.get("/api/v1/jobs", params=asked).json()["next_cursor"]

    for other in ({"group_by": "model"}, {"sort": "name"}):
        assert client.get("/api/v1/jobs", params={**other, "cursor": cursor}).status_code == 422


def test_without_a_grouping_there_are_no_groups(client: TestClient, runs: dict[str, str]) -> None:
    assert client.get("/api/v1/jobs").json()["groups"] is None
    assert client.get("/api/v1/jobs", params={"sort": "name"}).json()["groups"] is None


@pytest.fixture
def named(database: Database, runs: dict[str, str]) -> None:
    """A model of all runs, and two datasets, the second of which has one run."""
    with database.write() as session:
        session.add(Model(id=MODEL, name="tiny", state="ready", source={}, lineage={}, warnings=[]))
        for dataset, name in ((DATASET, "Sums"), (OTHER_DATASET, "birds")):
            session.add(Dataset(id=dataset, name=name))
        service.get_locked_job(session, job_id=runs["d"]).dataset_id = OTHER_DATASET


def test_datasets_come_in_the_order_of_their_names(
    client: TestClient, runs: dict[str, str], named: None
) -> None:
    assert read(client, group_by="dataset", sort="name", order="asc") == (
        "dabce",
        {OTHER_DATASET: 1, DATASET: 4},
    )
    assert read(client, group_by="model")[1] == {MODEL: 5}


@pytest.mark.parametrize(
    ("name", "called", "expected"),
    [
        ("model", "tiny", "abcde"),
        ("model", MODEL, "abcde"),
        ("dataset", "birds", "d"),
        ("dataset", OTHER_DATASET, "d"),
        ("dataset", "nothing of that name", ""),
    ],
)
def test_jobs_are_filtered_by_model_and_dataset(
    client: TestClient, runs: dict[str, str], named: None, name: str, called: str, expected: str
) -> None:
    found = client.get("/api/v1/jobs", params={name: called, "sort": "name", "order": "asc"}).json()["items"]

    assert "".join(job["name"] for job in found) == expected


def test_jobs_of_different_deleted_models_and_datasets_stay_apart(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    gone = [(MODEL, DATASET), ("mdl_bbbbbbbbbbbb", OTHER_DATASET)]
    for model, dataset in gone:
        make_job(name="x", model_id=model, dataset_id=dataset)
    make_job(name="x", model_id=MODEL, dataset_id=None)

    assert read(client, group_by="model", limit=1)[1] == {MODEL: 2, "mdl_bbbbbbbbbbbb": 1}
    assert read(client, group_by="dataset", limit=1)[1] == {DATASET: 1, OTHER_DATASET: 1, None: 1}


@pytest.mark.parametrize("character", ["汉", "𠀀", "\x01"])
def test_long_names_in_any_script_have_pages(
    client: TestClient, make_job: Callable[..., str], character: str
) -> None:
    for _ in range(2):
        make_job(name=character * 200, group=character * 200)

    for sort in ("name", "group"):
        assert read(client, group_by="group", sort=sort, limit=1)[1] == {character * 200: 2}
