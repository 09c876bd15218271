"""Reports as the API takes them and hands them out."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations.models import Evaluation
from trellis_api.reports import service
from trellis_api.reports.folder import report_folder
from trellis_api.reports.schemas import ReportProblem

MISSING = ReportProblem(format="pdf", code="chromium_missing", message="There is no Chromium.")


@pytest.fixture
def evaluation(database: Database, make_job: Callable[..., str]) -> str:
    """A finished evaluation; its id."""
    job_id = make_job(kind="evaluate", dataset_id=None)
    with database.write() as session:
        row = Evaluation(
            id="ev_aaaaaaaaaaaa", job_id=job_id, name="measured", target_kind="model", target_name="tiny",
            request={}, results=[], manifest={},
        )  # fmt: skip
        evaluations.add_evaluation(session, row)
    return row.id


def create(client: TestClient, *ids: str, **changes: Any) -> Any:
    return client.post("/api/v1/reports", json={"name": "A report", "evaluations": list(ids), **changes})


def write(database: Database, settings: Settings, report_id: str, *problems: ReportProblem) -> None:
    """What the worker does."""
    folder = report_folder(settings, report_id)
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [kind for kind in ("md", "html", "pdf") if kind not in {each.format for each in problems}]
    for kind in kinds:
        (folder / f"report.{kind}").write_text(f"<b>{kind}</b>")
    with database.write() as session:
        assert service.begin_writing(session, report_id=report_id) is not None
        sizes = dict.fromkeys(kinds, 9)
        assert service.record_files(session, report_id=report_id, sizes=sizes, problems=list(problems))


def test_a_report_is_asked_for_written_and_downloaded(
    client: TestClient, database: Database, settings: Settings, evaluation: str
) -> None:
    created = create(client, evaluation, evaluation, name="Bericht 报告", language="zh")
    assert created.status_code == 201, created.text
    report = created.json()
    assert (report["state"], report["files"], report["language"]) == ("pending", [], "zh")
    assert report["evaluations"] == [{"id": evaluation, "name": "measured"}]

    write(database, settings, report["id"])

    url = f"/api/v1/reports/{report['id']}"
    ready = client.get(url).json()
    assert (ready["state"], ready["can_retry"]) == ("ready", False)
    assert [each["format"] for each in ready["files"]] == ["md", "html", "pdf"]
    types = {"md": "text/markdown", "html": "text/html", "pdf": "application/pdf"}
    for kind, media_type in types.items():
        file = client.get(f"{url}/file", params={"format": kind})
        assert file.text == f"<b>{kind}</b>"
        assert file.headers["content-type"].startswith(media_type)
        # What a model wrote must not become a page of the platform.
        assert file.headers["content-disposition"].startswith("attachment")
        assert "%E6%8A%A5%E5%91%8A" in file.headers["content-disposition"]


def test_a_file_that_is_still_to_come_is_told_apart_from_one_that_never_will(
    client: TestClient, database: Database, settings: Settings, evaluation: str
) -> None:
    report_id = create(client, evaluation).json()["id"]
    url = f"/api/v1/reports/{report_id}"

    early = client.get(f"{url}/file", params={"format": "pdf"})
    write(database, settings, report_id, MISSING)
    never = client.get(f"{url}/file", params={"format": "pdf"})

    assert (early.status_code, early.json()["details"]) == (404, {"state": "pending", "code": None})
    assert never.json()["error"] == "report_file_missing"
    assert never.json()["details"] == {"state": "ready", "code": "chromium_missing"}
    report = client.get(url).json()
    assert report["problems"] == [MISSING.model_dump()]
    assert client.get(f"{url}/file", params={"format": "html"}).status_code == 200


def test_a_report_that_misses_something_is_written_again(
    client: TestClient, database: Database, settings: Settings, evaluation: str
) -> None:
    report_id = create(client, evaluation).json()["id"]
    url = f"/api/v1/reports/{report_id}"
    assert client.post(f"{url}/retry").json()["error"] == "report_not_retryable"
    write(database, settings, report_id, MISSING)

    assert client.post(f"{url}/retry").json()["state"] == "pending"
    write(database, settings, report_id)

    assert client.get(url).json()["problems"] == []
    assert client.post(f"{url}/retry").status_code == 409


def test_a_report_that_failed_says_why(client: TestClient, database: Database, evaluation: str) -> None:
    report_id = create(client, evaluation).json()["id"]

    with database.write() as session:
        service.begin_writing(session, report_id=report_id)
        service.record_failure(session, report_id=report_id, reason="The disk is full.")

    report = client.get(f"/api/v1/reports/{report_id}").json()
    assert (report["state"], report["state_reason"], report["can_retry"]) == (
        "failed",
        "The disk is full.",
        True,
    )


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"evaluations": ["ev_bbbbbbbbbbbb"]}, 422, "unknown_evaluation"),
        ({"evaluations": []}, 422, "invalid_request"),
        ({"evaluations": ["../../etc"]}, 422, "invalid_request"),
        ({"formats": ["docx"]}, 422, "invalid_request"),
        ({"language": "de"}, 422, "invalid_request"),
        ({"name": " "}, 422, "invalid_request"),
    ],
)
def test_what_cannot_be_written_is_refused(
    client: TestClient, evaluation: str, changes: dict[str, Any], status: int, code: str
) -> None:
    refused = create(client, evaluation, **changes)

    assert (refused.status_code, refused.json()["error"]) == (status, code)


def test_an_evaluation_without_results_is_no_part_of_a_report(
    client: TestClient, database: Database, evaluation: str
) -> None:
    with database.write() as session:
        row = evaluations.find_evaluation(session, evaluation_id=evaluation)
        assert row is not None
        row.results = None
        session.add(row)

    refused = create(client, evaluation)

    assert (refused.status_code, refused.json()["error"]) == (409, "evaluation_unfinished")


def test_reports_are_listed_newest_first_in_pages_and_by_evaluation(
    client: TestClient, evaluation: str
) -> None:
    made = [create(client, evaluation).json()["id"] for _ in range(3)]

    first = client.get("/api/v1/reports", params={"limit": 2}).json()
    rest = client.get("/api/v1/reports", params={"cursor": first["next_cursor"]}).json()
    own = client.get("/api/v1/reports", params={"evaluation": evaluation}).json()
    none = client.get("/api/v1/reports", params={"evaluation": "ev_bbbbbbbbbbbb"}).json()

    assert [each["id"] for each in first["items"] + rest["items"]] == made[::-1]
    assert len(own["items"]) == 3
    assert none["items"] == []


def test_a_deleted_report_leaves_its_files_to_the_workers(
    client: TestClient, database: Database, settings: Settings, evaluation: str
) -> None:
    report_id = create(client, evaluation).json()["id"]
    write(database, settings, report_id)

    assert client.delete(f"/api/v1/reports/{report_id}").status_code == 204

    assert client.get(f"/api/v1/reports/{report_id}").json()["error"] == "report_not_found"
    assert client.delete(f"/api/v1/reports/{report_id}").status_code == 404
    with database.read() as session:
        assert report_id in evaluations.list_leftovers(session)


def test_an_evaluation_that_was_deleted_since_has_no_name(
    client: TestClient, database: Database, evaluation: str
) -> None:
    report_id = create(client, evaluation).json()["id"]

    with database.write() as session:
        session.delete(evaluations.find_evaluation(session, evaluation_id=evaluation))

    assert client.get(f"/api/v1/reports/{report_id}").json()["evaluations"] == [
        {"id": evaluation, "name": None}
    ]
