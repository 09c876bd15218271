"""The latest results beside those of their parents, and what is wrong with jobs that run."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.alarms.models import Alarm
from trellis_api.jobs.metrics import store as metric_store
from trellis_contracts.states import JobState

LOSS = "val/loss"
MakeJob = Callable[..., str]


def read(client: TestClient, **params: Any) -> dict[str, Any]:
    answer = client.get("/api/v1/monitoring/activity", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def report(database: Database, job_id: str, *losses: float) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        for step, loss in enumerate(losses, start=1):
            metric_store.write(session, job=job, metrics=[(step, {LOSS: loss})])


def finish(make_job: MakeJob, name: str, *, hours_ago: int, **changes: Any) -> str:
    ended = utc_now() - timedelta(hours=hours_ago)
    values = {"recipe": "sft", "state": JobState.SUCCEEDED, "started_at": ended, "finished_at": ended}
    return make_job(name=name, **values | changes)


def test_finished_trainings_come_with_their_parents(
    client: TestClient, database: Database, make_job: MakeJob
) -> None:
    parent = finish(make_job, "parent", hours_ago=3)
    copy = finish(make_job, "copy", hours_ago=1, cloned_from=parent, state=JobState.STOPPED)
    finish(make_job, "orphan", hours_ago=2, cloned_from="job_aaaaaaaaaaaa")
    report(database, parent, 2.0, 1.5)
    report(database, copy, 1.0, 1.25)
    finish(make_job, "failed", hours_ago=0, state=JobState.FAILED)
    finish(make_job, "an export", hours_ago=0, kind="export")
    make_job(name="never launched", state=JobState.STOPPED, finished_at=utc_now())
    make_job(name="running", state=JobState.RUNNING)

    finished = read(client)["finished"]

    assert [each["job"]["name"] for each in finished] == ["copy", "orphan", "parent"]
    first = finished[0]
    assert (first["job"]["metric"]["key"], first["job"]["metric"]["last"]) == (LOSS, 1.25)
    assert (first["parent"]["name"], first["parent"]["metric"]["last"]) == ("parent", 1.5)
    assert [each["parent"] for each in finished[1:]] == [None, None]
    assert [each["job"]["name"] for each in read(client, limit=1)["finished"]] == ["copy"]


def test_active_alarms_of_unfinished_jobs_are_listed_critical_ones_first(
    client: TestClient, database: Database, make_job: MakeJob
) -> None:
    running = make_job(name="running", state=JobState.RUNNING)
    ended = make_job(name="ended", state=JobState.SUCCEEDED)
    with database.write() as session:
        for job_id, code, severity, is_active in (
            (running, "kl_exploding", "warning", True),
            (running, "loss_not_finite", "critical", True),
            (running, "stalled", "critical", False),
            (ended, "stalled", "critical", True),
        ):
            session.add(
                Alarm(
                    job_id=job_id, attempt=1, code=code, severity=severity, step=3, first_step=3, last_step=4,
                    is_active=is_active,
                )
            )  # fmt: skip

    alarms = read(client)["alarms"]

    assert [each["alarm"]["code"] for each in alarms] == ["loss_not_finite", "kl_exploding"]
    assert alarms[0]["job"] == {"id": running, "name": "running"}
    assert alarms[0]["alarm"]["title"]["zh"] != ""


def test_an_empty_platform_has_no_activity(client: TestClient) -> None:
    assert read(client) == {"finished": [], "alarms": []}
    assert client.get("/api/v1/monitoring/activity", params={"limit": 51}).status_code == 422
