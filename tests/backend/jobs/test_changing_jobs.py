"""Stop, resume, clone, delete: what each does, and when it is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import repository, service
from trellis_api.jobs.models import Checkpoint
from trellis_contracts.states import JobState


def report(client: TestClient, launched: Any, sequence: int, *events: dict[str, Any]) -> None:
    response = client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/batches",
        json={"attempt": launched.attempt, "sequence": sequence, "events": list(events)},
        headers=launched.headers,
    )
    assert response.status_code == 200, response.text


def metrics(step: int, **values: float) -> dict[str, Any]:
    return {"kind": "metrics", "time": utc_now().isoformat(), "step": step, "values": values}


def add_checkpoint(database: Database, settings: Settings, job_id: str, step: int) -> Path:
    path = settings.checkpoint_dir(job_id) / f"global_step_{step}"
    path.mkdir(parents=True)
    with database.write() as session:
        session.add(
            Checkpoint(
                job_id=job_id, step=step, attempt=1, path=str(path), size_bytes=1, created_at=utc_now()
            )
        )
    return path


def settle(database: Database, job_id: str, state: JobState, **facts: Any) -> None:
    with database.write() as session:
        assert service.settle(session, job_id=job_id, attempt=1, state=state, **facts)


def test_a_queued_job_is_stopped_at_once(client: TestClient, make_job: Callable[..., str]) -> None:
    job_id = make_job()

    job = client.post(f"/api/v1/jobs/{job_id}/stop").json()

    assert job["state"] == "stopped"
    assert job["finished_at"]
    assert job["can_resume"]


def test_a_running_job_is_asked_to_stop(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()
    report(client, launched, 1, metrics(1, loss=1.0))

    job = client.post(f"/api/v1/jobs/{launched.job_id}/stop").json()
    again = client.post(f"/api/v1/jobs/{launched.job_id}/stop")

    assert job["state"] == "stopping"
    assert not job["can_stop"]
    assert again.status_code == 200
    beat = client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/heartbeat",
        json={"attempt": 1, "step": 1},
        headers=launched.headers,
    )
    assert beat.json()["stop_requested"] is True


def test_stopping_a_finished_job_is_rejected(
    client: TestClient, database: Database, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    settle(database, launched.job_id, JobState.SUCCEEDED, exit_code=0)

    response = client.post(f"/api/v1/jobs/{launched.job_id}/stop")

    assert response.status_code == 409
    assert response.json()["error"] == "job_not_stoppable"


def test_resume_continues_from_the_newest_checkpoint_whose_files_exist(
    client: TestClient, database: Database, settings: Settings, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    kept = add_checkpoint(database, settings, launched.job_id, 4)
    add_checkpoint(database, settings, launched.job_id, 8).rmdir()
    settle(database, launched.job_id, JobState.CRASHED, reason="killed", cause="killed")

    job = client.post(f"/api/v1/jobs/{launched.job_id}/resume").json()

    assert (job["state"], job["attempt"], job["resume_step"]) == ("queued", 2, 4)
    assert job["failure"] is None
    assert job["progress"]["step"] == 4
    with database.read() as session:
        row = repository.find_job(session, job_id=launched.job_id)
        assert row is not None
        assert row.resume_from == str(kept)


def test_resume_forgets_the_steps_behind_the_checkpoint(
    client: TestClient, database: Database, settings: Settings, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    report(client, launched, 1, *(metrics(step, loss=float(step)) for step in range(1, 201)))
    add_checkpoint(database, settings, launched.job_id, 150)
    settle(database, launched.job_id, JobState.STOPPED, exit_code=75)

    client.post(f"/api/v1/jobs/{launched.job_id}/resume", json={"checkpoint_step": 150})

    series = client.get(f"/api/v1/jobs/{launched.job_id}/metrics").json()["series"][0]
    assert series["steps"] == list(range(1, 151))


@pytest.mark.parametrize(
    "where", ["/tmp", "../..", "jobs/job_aaaaaaaaaaaa/checkpoints/global_step_1", "a\0b"]
)
def test_resume_refuses_a_checkpoint_that_is_not_the_jobs_own(
    where: str,
    client: TestClient,
    database: Database,
    settings: Settings,
    make_launched: Callable[..., Any],
) -> None:
    launched = make_launched()
    (settings.checkpoint_dir("job_aaaaaaaaaaaa") / "global_step_1").mkdir(parents=True)
    if "\0" in where and not database.is_sqlite:
        pytest.skip("PostgreSQL keeps no such path")
    with database.write() as session:
        session.add(
            Checkpoint(
                job_id=launched.job_id,
                step=1,
                attempt=1,
                path=where,
                size_bytes=1,
                created_at=utc_now(),
            )
        )
    settle(database, launched.job_id, JobState.FAILED, exit_code=1)

    response = client.post(f"/api/v1/jobs/{launched.job_id}/resume", json={"checkpoint_step": 1})

    assert response.status_code == 404
    assert response.json()["error"] == "checkpoint_not_found"


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, None])
def test_only_a_stopped_or_failed_job_can_be_resumed(
    client: TestClient, database: Database, make_launched: Callable[..., Any], state: JobState | None
) -> None:
    launched = make_launched()
    if state is not None:
        settle(database, launched.job_id, state)

    response = client.post(f"/api/v1/jobs/{launched.job_id}/resume")

    assert response.status_code == 409
    assert response.json()["error"] == "job_not_resumable"


def test_a_clone_has_the_changes_and_the_rest_of_the_original(
    client: TestClient, make_job: Callable[..., str], model: Any, dataset: Any
) -> None:
    original = make_job(
        name="original", preset="cpu-tiny", model_id=model.id, dataset_id=dataset.id, tags=("a",), seed=5
    )

    response = client.post(f"/api/v1/jobs/{original}/clone", json={"name": "copy", "seed": 6})

    assert response.status_code == 201, response.text
    job = response.json()
    assert (job["name"], job["seed"], job["preset"], job["tags"]) == ("copy", 6, "cpu-tiny", ["a"])
    assert job["cloned_from"] == original
    assert job["id"] != original


def test_an_active_job_cannot_be_deleted(client: TestClient, make_job: Callable[..., str]) -> None:
    job_id = make_job()

    response = client.delete(f"/api/v1/jobs/{job_id}")

    assert response.status_code == 409
    assert response.json()["error"] == "job_active"


def test_deleting_removes_everything_that_was_reported(
    client: TestClient, database: Database, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched(tags=("x",))
    line = {"kind": "log", "time": utc_now().isoformat(), "stream": "stdout", "lines": ["hello"]}
    report(client, launched, 1, metrics(1, loss=1.0), line)
    settle(database, launched.job_id, JobState.FAILED, exit_code=1)

    response = client.delete(f"/api/v1/jobs/{launched.job_id}")

    assert response.status_code == 204
    assert client.get(f"/api/v1/jobs/{launched.job_id}").status_code == 404
    with database.read() as session:
        from trellis_api.tables import metadata

        reports = [table for table in metadata.sorted_tables if table.name != "purges"]
        own = [table for table in reports if "job_id" in table.c or "series_id" in table.c]
        assert len(own) >= 9
        for table in own:
            assert session.connection().execute(table.select()).first() is None, table.name
        assert launched.job_id in repository.list_purges(session)


def test_a_failed_job_says_why(
    client: TestClient, database: Database, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    lines = [f"line {number}" for number in range(30)]
    log = {"kind": "log", "time": utc_now().isoformat(), "stream": "stderr", "lines": lines}
    outcome = {
        "kind": "outcome",
        "time": utc_now().isoformat(),
        "outcome": "failed",
        "exit_code": 1,
        "reason": "The GPU ran out of memory at step 3.",
        "cause": "cuda_out_of_memory",
    }
    report(client, launched, 1, log, outcome)
    settle(database, launched.job_id, JobState.FAILED, exit_code=1)

    failure = client.get(f"/api/v1/jobs/{launched.job_id}").json()["failure"]

    assert failure["reason"] == "The GPU ran out of memory at step 3."
    assert failure["exit_code"] == 1
    assert failure["hint"]["en"]
    assert failure["hint"]["zh"]
    assert failure["last_lines"] == lines[-20:]


def test_a_job_says_where_its_attempts_took_over(
    client: TestClient, database: Database, settings: Settings, make_launched: Callable[..., Any]
) -> None:
    job_id = make_launched().job_id
    for step in (4, 8, 12):
        add_checkpoint(database, settings, job_id, step)
    starts = []
    for number, step in enumerate((4, 12, 8), start=2):
        with database.write() as session:
            assert service.settle(session, job_id=job_id, attempt=number - 1, state=JobState.CRASHED)
        resumed = client.post(f"/api/v1/jobs/{job_id}/resume", json={"checkpoint_step": step})
        assert resumed.json()["resume_step"] == step
        with database.write() as session:
            assert service.claim_for_launch(session, job_id=job_id) is not None
        starts.append(client.get(f"/api/v1/jobs/{job_id}").json()["resumes"])

    # The fourth attempt went back behind the beginning of the third, whose steps are gone.
    assert starts == [
        [{"attempt": 2, "step": 4}],
        [{"attempt": 2, "step": 4}, {"attempt": 3, "step": 12}],
        [{"attempt": 2, "step": 4}, {"attempt": 4, "step": 8}],
    ]
    compared = client.get("/api/v1/jobs/compare", params={"ids": job_id}).json()["jobs"]
    assert [job["resumes"] for job in compared] == starts[-1:]
