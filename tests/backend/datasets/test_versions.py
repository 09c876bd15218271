"""Versions of datasets over HTTP: history, names, roll back, what may be deleted, and who is faster."""

import errno
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import select
from trellis_api.core.database import Database
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as tasks
from trellis_api.datasets import versions
from trellis_api.datasets.errors import BranchMoved
from trellis_api.datasets.models import Dataset, DatasetRef, DatasetVersion
from trellis_api.datasets.store import open_store
from trellis_api.models.models import Model
from trellis_contracts.data_tasks import StatisticsTask
from trellis_contracts.states import JobState
from trellis_data.versions import objects
from trellis_data.versions.records import StoreProblem
from trellis_testing.datasets import add_dataset, add_version, sums
from trellis_workers.data.tidy import collect

Publish = Callable[..., str]


@pytest.fixture
def publish(database: Database, settings: Settings, dataset: Dataset) -> Publish:
    """The next version of the dataset; its id."""

    def add(rows: Any, **changes: Any) -> str:
        with database.write() as session:
            return add_version(session, settings, dataset.id, rows, **changes).id

    return add


@pytest.fixture
def address(dataset: Dataset) -> str:
    return f"/api/v1/datasets/{dataset.id}"


def test_the_history_is_paged_newest_first(client: TestClient, address: str, publish: Publish) -> None:
    made = [publish(sums(10 + number), message=f"version {number}") for number in range(4)]

    first = client.get(f"{address}/versions", params={"limit": 3}).json()
    rest = client.get(f"{address}/versions", params={"limit": 3, "cursor": first["next_cursor"]}).json()

    listed = [*first["items"], *rest["items"]]
    assert [version["number"] for version in listed] == [5, 4, 3, 2, 1]
    assert [version["id"] for version in listed[:4]] == made[::-1]
    assert rest["next_cursor"] is None
    newest = listed[0]
    assert (newest["message"], newest["branches"], newest["parents"]) == ("version 3", ["main"], [made[2]])
    assert (newest["splits"], newest["row_count"]) == ({"train": 13}, 13)


def test_what_a_dataset_says_is_said_of_the_tip_of_main(
    client: TestClient, address: str, publish: Publish
) -> None:
    tip = publish({"train": [{"text": "one"}, {"text": "two"}], "test": [{"text": "three"}]})

    found = client.get(address).json()

    assert (found["head"], found["state"], found["row_count"]) == (tip, "ready", 3)
    assert found["splits"] == {"test": 1, "train": 2}
    assert found["columns"] == [{"name": "text", "type": "text"}]
    assert found["format"] == "text"


def test_rows_that_are_those_of_the_tip_make_no_version(
    client: TestClient, address: str, publish: Publish, dataset: Dataset
) -> None:
    assert publish(sums(512)) == dataset.head

    assert len(client.get(f"{address}/versions").json()["items"]) == 1


def test_a_version_is_found_by_branch_tag_id_and_digits(
    client: TestClient, address: str, publish: Publish, dataset: Dataset
) -> None:
    first, second = dataset.head, publish(sums(9))
    client.post(f"{address}/tags", json={"name": "v1", "version": first}).raise_for_status()

    for name, wanted in (("main", second), ("v1", first), (first, first), (str(first)[:8], first)):
        found = client.get(f"{address}/versions/{name}")
        assert (found.status_code, found.json()["id"]) == (200, wanted)
        assert client.get(f"{address}/rows", params={"version": name}).json()["version"] == wanted


@pytest.mark.parametrize("name", ["nothing", "0" * 64, "abcdef12", "%2e%2e", "a" * 500])
def test_a_version_that_is_not_there_is_not_found(client: TestClient, address: str, name: str) -> None:
    for response in (client.get(f"{address}/versions/{name}"), client.delete(f"{address}/versions/{name}")):
        assert response.status_code == 404
    assert client.post(f"{address}/rollback", json={"version": "nothing"}).status_code == 404


def test_nobody_is_misled_by_a_branch_that_is_called_like_a_version(
    client: TestClient, address: str, publish: Publish, dataset: Dataset
) -> None:
    second = publish(sums(9))
    client.post(f"{address}/branches", json={"name": dataset.head, "version": second}).raise_for_status()

    assert client.get(f"{address}/versions/{dataset.head}").json()["id"] == dataset.head


def test_detail_says_what_a_version_holds_and_where_it_came_from(
    client: TestClient, address: str, dataset: Dataset
) -> None:
    found = client.get(f"{address}/versions/main").json()

    assert found["format_columns"] == {"prompt": "question", "answer": "answer"}
    assert [column["name"] for column in found["columns"]] == ["question", "answer"]
    assert found["provenance"]["notes"]["format_reason"]
    assert found["uses"] == []


def test_branches_and_tags(client: TestClient, address: str, publish: Publish, dataset: Dataset) -> None:
    client.post(f"{address}/branches", json={"name": "try", "version": "main"}).raise_for_status()
    side = publish(sums(7), branch="try")
    tip = publish(sums(8))
    client.post(f"{address}/tags", json={"name": "best", "version": side[:10]}).raise_for_status()

    refs = client.get(f"{address}/refs").json()

    assert [(ref["name"], ref["version"]) for ref in refs["branches"]] == [("main", tip), ("try", side)]
    assert [(ref["name"], ref["version"]) for ref in refs["tags"]] == [("best", side)]
    of_branch = client.get(f"{address}/versions", params={"branch": "try"}).json()["items"]
    assert [version["id"] for version in of_branch] == [side, dataset.head]
    assert client.get(address).json()["head"] == tip
    for kind, name in (("branches", "best"), ("tags", "try"), ("branches", "try"), ("tags", "main")):
        taken = client.post(f"{address}/{kind}", json={"name": name, "version": "main"})
        assert (taken.status_code, taken.json()["error"]) == (409, "ref_name_taken")
    assert client.delete(f"{address}/branches/best").status_code == 404
    assert client.delete(f"{address}/branches/try").status_code == 204
    assert client.delete(f"{address}/tags/best").status_code == 204
    assert client.delete(f"{address}/branches/main").json()["error"] == "main_branch_stays"
    assert side in [version["id"] for version in client.get(f"{address}/versions").json()["items"]]


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "a" * 101, "x\n", "名字"])
def test_names_that_cannot_be_are_refused(client: TestClient, address: str, name: str) -> None:
    for kind in ("branches", "tags"):
        response = client.post(f"{address}/{kind}", json={"name": name, "version": "main"})
        assert response.status_code == 422


def test_rolling_back_keeps_what_lies_between(
    client: TestClient, address: str, publish: Publish, dataset: Dataset
) -> None:
    between = publish([{"text": "a mistake"}])

    made = client.post(f"{address}/rollback", json={"version": str(dataset.head)[:8]})

    assert made.status_code == 201, made.text
    version = made.json()
    assert (version["origin"], version["parents"], version["number"]) == ("rollback", [between], 3)
    assert version["tree"] == client.get(f"{address}/versions/{dataset.head}").json()["tree"]
    assert "Roll back to version 1" in version["message"]
    found = client.get(address).json()
    assert (found["head"], found["format"], found["row_count"]) == (version["id"], "prompt-answer", 512)
    assert found["format_reason"] == dataset.format_reason
    assert client.get(f"{address}/rows").json()["rows"][0] == sums(1)[0]
    again = client.post(f"{address}/rollback", json={"version": dataset.head}).json()
    assert again["id"] == version["id"]
    missing = client.post(f"{address}/rollback", json={"version": "main", "branch": "none"})
    assert (missing.status_code, missing.json()["error"]) == (404, "ref_not_found")


def test_a_version_that_nothing_came_of_may_go_and_its_rows_go_too(
    client: TestClient, address: str, publish: Publish, settings: Settings, database: Database
) -> None:
    client.post(f"{address}/branches", json={"name": "try", "version": "main"}).raise_for_status()
    side = publish([{"text": "only here"}], branch="try")
    for name in ("main", side):
        refused = client.delete(f"{address}/versions/{name}")
        assert (refused.status_code, refused.json()["error"]) == (409, "version_in_use")
    assert refused.json()["details"]["branches"] == ["try"]
    client.delete(f"{address}/branches/try").raise_for_status()

    assert client.delete(f"{address}/versions/{side}").status_code == 204

    assert client.get(f"{address}/versions/{side}").status_code == 404
    collected = collect(settings, database)
    assert collected is not None
    assert collected.files >= 3
    with pytest.raises(StoreProblem):
        open_store(settings).version(side)
    assert client.get(f"{address}/rows").json()["row_count"] == 512


def test_a_parent_and_a_tagged_version_stay(
    client: TestClient, address: str, publish: Publish, dataset: Dataset
) -> None:
    second = publish(sums(5))
    third = publish(sums(6))
    client.post(f"{address}/tags", json={"name": "kept", "version": second}).raise_for_status()

    refused = client.delete(f"{address}/versions/{second}").json()

    assert refused["details"]["children"] == [third]
    assert refused["details"]["tags"] == ["kept"]


@pytest.fixture
def loose(client: TestClient, address: str, publish: Publish) -> str:
    """A version for which only its uses speak."""
    client.post(f"{address}/branches", json={"name": "loose", "version": "main"}).raise_for_status()
    version = publish(sums(11), branch="loose")
    client.delete(f"{address}/branches/loose").raise_for_status()
    return version


def test_a_version_stays_as_long_as_a_job_reads_it(
    client: TestClient, address: str, loose: str, dataset: Dataset, database: Database,
    make_job: Callable[..., str],
) -> None:  # fmt: skip
    job = make_job(dataset_id="ds_bbbbbbbbbbbb", validation_dataset_id=dataset.id, validation_version=loose)

    refused = client.delete(f"{address}/versions/{loose}")

    (use,) = refused.json()["details"]["uses"]
    assert (use["kind"], use["id"], use["is_unfinished"]) == ("job", job, True)
    client.post(f"/api/v1/jobs/{job}/stop").raise_for_status()
    (use,) = client.get(f"{address}/versions/{loose}").json()["uses"]
    assert (use["id"], use["is_unfinished"]) == (job, False)
    assert client.delete(f"{address}/versions/{loose}").status_code == 204


def test_a_version_stays_as_long_as_a_task_reads_it(
    client: TestClient, address: str, loose: str, dataset: Dataset, database: Database
) -> None:
    with database.write() as session:
        task = tasks.create(session, request=StatisticsTask(), dataset_id=dataset.id, version_id=loose)

    refused = client.delete(f"{address}/versions/{loose}")

    assert [use["id"] for use in refused.json()["details"]["uses"]] == [task.id]
    client.post(f"/api/v1/data-tasks/{task.id}/cancel").raise_for_status()
    assert client.delete(f"{address}/versions/{loose}").status_code == 204


def test_a_version_to_be_compared_with_stays(client: TestClient, address: str, loose: str) -> None:
    client.post(f"{address}/diff", json={"before": loose, "after": "main"}).raise_for_status()

    refused = client.delete(f"{address}/versions/{loose}")

    assert [use["kind"] for use in refused.json()["details"]["uses"]] == ["task"]


def test_a_version_that_a_model_has_learned_from_stays_though_the_job_is_gone(
    client: TestClient, address: str, loose: str, database: Database, settings: Settings, dataset: Dataset,
    make_job: Callable[..., str],
) -> None:  # fmt: skip
    make_job(state=JobState.SUCCEEDED, dataset_id=dataset.id, dataset_version=loose)
    lineage = {"job_id": "job_gone", "dataset_id": dataset.id, "dataset_version": loose}
    with database.write() as session:
        session.add(
            Model(
                id="mdl_aaaaaaaaaaaa",
                name="taught",
                state="ready",
                source={"kind": "local"},
                lineage={"job_id": "job_b", "ancestors": [lineage]},
                warnings=[],
            )
        )

    refused = client.delete(f"{address}/versions/{loose}")

    assert [use["name"] for use in refused.json()["details"]["uses"]] == ["taught"]
    assert client.delete(address).status_code == 204


def test_a_dataset_of_another_name_does_not_see_the_versions(
    client: TestClient, database: Database, settings: Settings, dataset: Dataset
) -> None:
    with database.write() as session:
        other = add_dataset(session, settings, sums(3))

    found = client.get(f"/api/v1/datasets/{dataset.id}/versions/{other.head}")

    assert found.status_code == 404


def test_a_dataset_without_rows_has_an_empty_history(client: TestClient, database: Database) -> None:
    with database.write() as session:
        session.add(Dataset(id="ds_aaaaaaaaaaaa", name="empty"))
    address = "/api/v1/datasets/ds_aaaaaaaaaaaa"

    assert client.get(f"{address}/versions").json() == {"items": [], "next_cursor": None}
    assert client.get(f"{address}/refs").json() == {"branches": [], "tags": []}
    assert client.get(f"{address}/versions/main").json()["error"] == "dataset_not_ready"
    assert client.get("/api/v1/datasets/ds_bbbbbbbbbbbb/versions").status_code == 404


# -- two at once, each with a connection of its own


@pytest.fixture
def shared(unmigrated: Database, tmp_path: Any) -> Iterator[tuple[Settings, Database, str]]:
    """A database that several threads write to, and a dataset in it."""
    url = unmigrated.url.render_as_string(hide_password=False)
    settings = Settings(data_root=tmp_path, database_url=url)
    upgrade(settings)
    with unmigrated.write() as session:
        dataset = add_dataset(session, settings, sums(20))
    return settings, unmigrated, dataset.id


def test_of_two_who_publish_one_is_told_that_the_branch_has_moved(
    shared: tuple[Settings, Database, str],
) -> None:
    settings, database, dataset_id = shared
    with database.read() as session:
        tip = versions.find_tip(session, dataset_id=dataset_id, branch="main")
    together = threading.Barrier(2)
    outcomes: list[str] = []

    def publish(count: int) -> None:
        together.wait()
        try:
            with database.write() as session:
                made = add_version(session, settings, dataset_id, sums(count), expected=tip)
                outcomes.append(made.id)
        except BranchMoved as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=publish, args=(count,)) for count in (30, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.read() as session:
        rows = session.exec(select(DatasetVersion).order_by(DatasetVersion.number)).all()
        (ref,) = session.exec(select(DatasetRef)).all()
        dataset = session.get_one(Dataset, dataset_id)
    assert outcomes.count("branch_moved") == 1
    (winner,) = (each for each in outcomes if each != "branch_moved")
    assert [row.number for row in rows] == [1, 2]
    assert rows[1].id == ref.version_id == dataset.head == winner
    assert dataset.row_count == rows[1].row_count


def test_a_version_whose_transaction_is_undone_is_never_seen(
    shared: tuple[Settings, Database, str],
) -> None:
    settings, database, dataset_id = shared
    made: list[str] = []

    def publish_and_die() -> None:
        with database.write() as session:
            made.append(add_version(session, settings, dataset_id, sums(30)).id)
            raise RuntimeError("killed before the commit")

    with pytest.raises(RuntimeError):
        publish_and_die()

    with database.read() as session:
        assert [row.number for row in session.exec(select(DatasetVersion))] == [1]
        assert session.get_one(Dataset, dataset_id).row_count == 20
    collect(settings, database)
    with pytest.raises(StoreProblem):
        open_store(settings).version(made[0])


def test_a_branch_is_read_without_the_versions_of_others(
    client: TestClient, address: str, publish: Publish, dataset: Dataset
) -> None:
    client.post(f"{address}/branches", json={"name": "side", "version": "main"}).raise_for_status()
    for number in range(12):
        publish(sums(10 + number))
    side = [publish(sums(30 + number), branch="side") for number in range(3)]
    loaded: list[str] = []
    note = partial(lambda seen, row, _: seen.append(row.id), loaded)
    event.listen(DatasetVersion, "load", note)

    first = client.get(f"{address}/versions", params={"branch": "side", "limit": 2}).json()
    rest = client.get(
        f"{address}/versions", params={"branch": "side", "limit": 2, "cursor": first["next_cursor"]}
    ).json()

    event.remove(DatasetVersion, "load", note)
    listed = [version["id"] for version in [*first["items"], *rest["items"]]]
    assert listed == [*side[::-1], dataset.head]
    assert set(loaded) == set(listed)
    assert rest["next_cursor"] is None


def test_rolling_back_on_a_full_disk_says_so(
    client: TestClient,
    address: str,
    publish: Publish,
    dataset: Dataset,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tip = publish(sums(9))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(objects, "_write_bytes", refuse)
    answer = client.post(f"{address}/rollback", json={"version": dataset.head})

    assert (answer.status_code, answer.json()["error"]) == (507, "disk_full")
    assert client.get(address).json()["head"] == tip
