"""What runs report is kept exactly once, from the right run only, and within limits."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.ingest import service as ingest
from trellis_api.jobs import service
from trellis_contracts.events import IngestBatch
from trellis_contracts.states import JobState

NOW = "2026-01-02T03:04:05Z"


def log_event(*lines: str) -> dict[str, Any]:
    return {"kind": "log", "time": NOW, "stream": "stdout", "lines": list(lines)}


def metrics_event(step: int, **values: Any) -> dict[str, Any]:
    return {"kind": "metrics", "time": NOW, "step": step, "values": values}


def send(client: TestClient, launched: Any, sequence: int, *events: dict[str, Any], **changes: Any) -> Any:
    batch = {"attempt": launched.attempt, "sequence": sequence, "events": list(events), **changes}
    return client.post(f"/api/v1/ingest/jobs/{launched.job_id}/batches", json=batch, headers=launched.headers)


def read_lines(client: TestClient, job_id: str) -> list[str]:
    page = client.get(f"/api/v1/jobs/{job_id}/logs", params={"after": 0, "limit": 5000}).json()
    assert [line["line"] for line in page["lines"]] == list(range(1, len(page["lines"]) + 1))
    return [line["text"] for line in page["lines"]]


def test_the_first_report_makes_a_job_running(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()

    receipt = send(client, launched, 1, log_event("hello"))

    assert receipt.json() == {"accepted": True, "expected": 2}
    job = client.get(f"/api/v1/jobs/{launched.job_id}").json()
    assert job["state"] == "running"
    assert job["started_at"]


def test_a_heartbeat_makes_a_job_running_too(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()

    reply = client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/heartbeat",
        json={"attempt": 1, "step": 0},
        headers=launched.headers,
    )

    assert reply.json()["stop_requested"] is False
    assert client.get(f"/api/v1/jobs/{launched.job_id}").json()["state"] == "running"


def test_a_repeated_batch_is_acknowledged_and_ignored(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    send(client, launched, 1, log_event("once"))

    again = send(client, launched, 1, log_event("twice"))

    assert again.status_code == 200
    assert again.json() == {"accepted": False, "expected": 2}
    assert read_lines(client, launched.job_id) == ["once"]


def test_a_gap_is_refused_with_the_number_that_is_expected(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()

    response = send(client, launched, 2, log_event("too early"))

    assert response.status_code == 409
    assert response.json()["error"] == "sequence_gap"
    assert response.json()["details"] == {"expected": 1}
    assert read_lines(client, launched.job_id) == []


def test_an_attempt_that_was_replaced_is_told_so(
    client: TestClient, database: Database, make_launched: Callable[..., Any], settings: Any
) -> None:
    launched = make_launched()
    with database.write() as session:
        service.settle(session, job_id=launched.job_id, attempt=1, state=JobState.CRASHED)
        service.resume(session, job_id=launched.job_id, data_root=settings.data_root)

    response = send(client, launched, 1, log_event("I live"))

    assert response.status_code == 409
    assert response.json()["error"] == "stale_attempt"


def test_the_token_of_a_settled_attempt_is_void(
    client: TestClient, database: Database, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    with database.write() as session:
        service.settle(session, job_id=launched.job_id, attempt=1, state=JobState.CRASHED)

    response = send(client, launched, 1, log_event("I live"))

    assert response.status_code == 401
    assert response.json()["error"] == "invalid_job_token"


def test_what_a_dead_attempt_left_is_still_taken_in_by_the_service(
    client: TestClient, database: Database, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    send(client, launched, 1, log_event("first"))
    batch = IngestBatch(attempt=1, sequence=2, events=[log_event("last words")])  # type: ignore[list-item]
    with database.write() as session:
        service.settle(session, job_id=launched.job_id, attempt=1, state=JobState.CRASHED)
        ingest.ingest_batch(session, job_id=launched.job_id, batch=batch)

    assert read_lines(client, launched.job_id) == ["first", "last words"]
    assert client.get(f"/api/v1/jobs/{launched.job_id}").json()["state"] == "crashed"


def test_a_job_token_is_good_for_its_job_alone(client: TestClient, make_launched: Callable[..., Any]) -> None:
    own, other = make_launched(), make_launched()

    response = client.post(
        f"/api/v1/ingest/jobs/{other.job_id}/batches",
        json={"attempt": 1, "sequence": 1, "events": []},
        headers=own.headers,
    )
    reading = client.get("/api/v1/jobs", headers=own.headers)

    assert response.status_code == 401
    assert reading.status_code == 401


def test_the_admin_token_is_no_job_token(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()

    response = client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/batches", json={"attempt": 1, "sequence": 1, "events": []}
    )

    assert response.status_code == 401


def test_gzip_is_unpacked(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()
    body = gzip.compress(json.dumps({"attempt": 1, "sequence": 1, "events": [log_event("packed")]}).encode())

    response = client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/batches",
        content=body,
        headers={**launched.headers, "Content-Encoding": "gzip"},
    )

    assert response.status_code == 200, response.text
    assert read_lines(client, launched.job_id) == ["packed"]


@pytest.mark.parametrize(
    ("body", "encoding", "status", "code"),
    [
        (gzip.compress(b"0" * 50_000_000), "gzip", 413, "batch_too_large"),
        (b"0" * 9_000_000, "identity", 413, "batch_too_large"),
        (b"not gzip at all", "gzip", 422, "malformed_batch"),
        (gzip.compress(b"{}")[:-4], "gzip", 422, "malformed_batch"),
        (b"{", "identity", 422, "malformed_batch"),
        (b"{}", "br", 422, "malformed_batch"),
        (b"\xff\xfe", "identity", 422, "invalid_request"),
    ],
    ids=["bomb", "huge", "no gzip", "cut gzip", "no json", "brotli", "no text"],
)
def test_a_body_that_is_no_batch_is_refused(
    client: TestClient,
    make_launched: Callable[..., Any],
    body: bytes,
    encoding: str,
    status: int,
    code: str,
) -> None:
    launched = make_launched()

    response = client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/batches",
        content=body,
        headers={**launched.headers, "Content-Encoding": encoding},
    )

    assert response.status_code == status
    assert response.json()["error"] == code


@pytest.mark.parametrize(
    "event",
    [
        metrics_event(2**63, loss=1.0),
        metrics_event(1, **{"k" * 300: 1.0}),
        {"kind": "progress", "time": NOW, "phase": "training", "step": 1, "total_steps": 10**30},
        {"kind": "checkpoint", "time": NOW, "step": 1, "path": "/x", "size_bytes": 10**30},
        {"kind": "surprise"},
    ],
)
def test_a_batch_with_an_impossible_event_changes_nothing(
    client: TestClient, make_launched: Callable[..., Any], event: dict[str, Any]
) -> None:
    launched = make_launched()

    response = send(client, launched, 1, log_event("before"), event)

    assert response.status_code == 422
    assert read_lines(client, launched.job_id) == []
    assert send(client, launched, 1).json() == {"accepted": True, "expected": 2}


def test_foreign_text_and_numbers_that_are_none_survive(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    manifest = {"kind": "manifest", "time": NOW, "manifest": {"nul": "a\x00b", "big": 2**70, "中文": "是"}}

    response = send(
        client,
        launched,
        1,
        log_event("a\x00b", "中文 ✓", "x" * 100_000),
        metrics_event(1, loss="NaN", kl="-Infinity"),
        manifest,
    )

    assert response.status_code == 200, response.text
    lines = read_lines(client, launched.job_id)
    assert lines[:2] == ["a\ufffdb", "中文 ✓"]
    assert len(lines[2]) < 20_000
    stored = client.get(f"/api/v1/jobs/{launched.job_id}/manifest").json()["manifest"]
    assert stored == {"nul": "a\ufffdb", "big": str(2**70), "中文": "是"}


def test_secrets_in_reports_are_masked(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()
    secret = "hf_" + "A1b2C3d4" * 5
    environment = {"HF_TOKEN": secret, "WANDB_API_KEY": "0123456789abcdef", "PATH": "/bin", "max_token": 5}
    outcome = {"kind": "outcome", "time": NOW, "outcome": "failed", "exit_code": 1, "reason": f"no {secret}"}

    send(
        client,
        launched,
        1,
        log_event(f"using {secret}", f"token {launched.token}", "Authorization: Bearer abcdefghijklmnopqrst"),
        {"kind": "manifest", "time": NOW, "manifest": {"env": environment}},
        outcome,
    )

    everything = (
        str(read_lines(client, launched.job_id)) + client.get(f"/api/v1/jobs/{launched.job_id}/manifest").text
    )
    assert secret not in everything
    assert launched.token not in everything
    assert "0123456789abcdef" not in everything
    assert "abcdefghijklmnopqrst" not in everything
    assert "/bin" in everything


def test_rollouts_of_a_step_stand_together_by_prompt(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    rollouts = [
        {"group": group, "prompt": f"p{group}", "response": response, "score": score, "response_tokens": 3}
        for group, response, score in [("a", "1", 1.0), ("b", "2", 0.0), ("a", "3", "NaN")]
    ]
    event = {"kind": "rollouts", "time": NOW, "step": 5, "split": "train", "rollouts": rollouts}

    send(client, launched, 1, event)

    read = client.get(f"/api/v1/jobs/{launched.job_id}/rollouts", params={"step": 5}).json()
    assert [(item["group"], item["response"], item["score"]) for item in read["items"]] == [
        ("a", "1", 1.0),
        ("a", "3", None),
        ("b", "2", 0.0),
    ]
    steps = client.get(f"/api/v1/jobs/{launched.job_id}/rollout-steps").json()
    assert steps == [{"step": 5, "split": "train", "count": 3, "mean_score": 0.5}]


def test_progress_gives_an_eta_from_this_attempts_speed(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    send(
        client,
        launched,
        1,
        *(
            {
                "kind": "progress",
                "time": f"2026-01-02T03:04:{2 * step:02d}Z",
                "phase": "training",
                "step": step,
                "total_steps": 20,
            }
            for step in (1, 2, 5)
        ),
    )

    job = client.get(f"/api/v1/jobs/{launched.job_id}").json()

    assert job["progress"] == {"phase": "training", "step": 5, "total_steps": 20, "fraction": 0.25}
    assert job["eta_s"] == 30.0


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    deliveries=st.lists(st.integers(1, 6), max_size=30),
)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_however_batches_are_delivered_each_line_and_point_is_kept_once(
    client: TestClient,
    database: Database,
    make_launched: Callable[..., Any],
    sizes: list[int],
    deliveries: list[int],
) -> None:
    """Batches arrive repeated, early and late, as after crashes of either side; in the end in order."""
    launched = make_launched()
    lines = [[f"{number}.{index}" for index in range(size)] for number, size in enumerate(sizes, start=1)]
    batches = [
        IngestBatch.model_validate(
            {
                "attempt": 1,
                "sequence": number,
                "events": [log_event(*texts), metrics_event(number, loss=number)],
            }
        )
        for number, texts in enumerate(lines, start=1)
    ]
    expected = 1
    for sequence in [*deliveries, *range(1, len(batches) + 1)]:
        if sequence > len(batches):
            continue
        try:
            with database.write() as session:
                receipt = ingest.ingest_batch(session, job_id=launched.job_id, batch=batches[sequence - 1])
            assert receipt.accepted == (sequence == expected)
            expected = receipt.expected
        except DomainError as error:
            assert (error.code, sequence > expected) == ("sequence_gap", True)  # noqa: PT017

    assert read_lines(client, launched.job_id) == [text for texts in lines for text in texts]
    series = client.get(f"/api/v1/jobs/{launched.job_id}/metrics").json()["series"]
    assert [curve["steps"] for curve in series] == [list(range(1, len(sizes) + 1))]


def test_a_batch_time_is_a_sign_of_life(
    client: TestClient, database: Database, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    begin = utc_now()

    send(client, launched, 1)

    with database.read() as session:
        from trellis_api.jobs import repository

        attempt = repository.find_attempt(session, job_id=launched.job_id, number=1)
        job = service.get_job(session, job_id=launched.job_id)
        assert attempt is not None
        assert attempt.heartbeat_at is not None
        assert attempt.heartbeat_at >= begin
        assert not service.is_overdue(job, attempt, timeout_s=45)
        assert service.is_overdue(job, attempt, timeout_s=0)
