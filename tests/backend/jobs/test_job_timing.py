"""Where the time of a job's steps goes: phases over the run, what limits it, single steps span by span."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.jobs.timing import store

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).isoformat()


def metrics(number: int, **seconds: float) -> dict[str, Any]:
    values = {f"timing_s/{phase}": value for phase, value in seconds.items()}
    return {"kind": "metrics", "time": NOW, "step": number, "values": values}


def timeline(step: int, **more: Any) -> dict[str, Any]:
    span = {"phase": "gen", "start_s": 0.0, "end_s": 3.0}
    found = {"kind": "timeline", "time": NOW, "step": step, "started_at": NOW, "duration_s": 4.0}
    return {**found, "lanes": [{"name": "trainer", "spans": [span]}], **more}


def send(client: TestClient, launched: Any, *events: dict[str, Any]) -> Any:
    batch = {"attempt": launched.attempt, "sequence": 1, "events": list(events)}
    url = f"/api/v1/ingest/jobs/{launched.job_id}/batches"
    return client.post(url, json=batch, headers=launched.headers)


def read(client: TestClient, job_id: str, place: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/jobs/{job_id}/{place}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_phases_are_told_in_their_order_with_what_no_timer_covers(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    send(
        client,
        launched,
        metrics(1, update_actor=2.0, gen=6.0, step=10.0),
        metrics(2, update_actor=2.0, gen=8.0, step=10.0, testing=10.0),
    )

    found = read(client, launched.job_id, "timing")

    assert [(each["phase"], each["group"], each["in_step"]) for each in found["phases"]] == [
        ("gen", "generation", True),
        ("update_actor", "update", True),
        ("testing", "validation", False),
        ("rest", "other", True),
    ]
    assert [each["seconds"] for each in found["phases"]] == [[6.0, 8.0], [2.0, 2.0], [0.0, 10.0], [2.0, 0.0]]
    assert (found["first_steps"], found["last_steps"], found["step_s"]) == ([1, 2], [1, 2], [10.0, 10.0])
    assert sum(each["share"] for each in found["phases"]) == pytest.approx(1.0)


def test_what_limits_a_run_is_said_with_its_figures(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    responses = {
        "response_time_s/median": 1.0, "response_time_s/max": 4.2, "response_time_s/tail_fraction": 0.5,
        "rollout_engine/queued_fraction": 0.25, "rollout_engine/kv_cache_use/max": 0.9,
        "process_busy/workers": 0.4, "process_busy/engines": 0.5,
    }  # fmt: skip
    step = metrics(1, gen=6.1, old_log_prob=1.0, ref=1.0, update_actor=1.9, step=10.0)
    send(client, launched, {**step, "values": {**step["values"], **responses}})

    limit = read(client, launched.job_id, "timing")["bottleneck"]

    assert (limit["group"], limit["steps"], limit["phases"]) == ("generation", 1, ["gen"])
    assert (limit["share"], limit["seconds"]) == (pytest.approx(0.61), pytest.approx(6.1))
    assert (limit["longest_response"], limit["tail_share"]) == (pytest.approx(4.2), 0.5)
    assert (limit["queued_share"], limit["kv_cache_use"]) == (0.25, 0.9)
    assert (limit["workers_busy"], limit["engines_busy"]) == (0.4, 0.5)


def test_phases_that_belong_together_are_compared_together(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    send(client, launched, metrics(1, gen=4.0, old_log_prob=2.5, ref=3.0, step=9.5))

    limit = read(client, launched.job_id, "timing")["bottleneck"]

    assert (limit["group"], limit["phases"]) == ("log_probs", ["ref", "old_log_prob"])
    assert (limit["longest_response"], limit["tail_share"]) == (None, None)
    assert (limit["queued_share"], limit["kv_cache_use"]) == (None, None)
    assert (limit["workers_busy"], limit["engines_busy"]) == (None, None)


def test_a_checkpoint_beside_the_steps_of_fine_tuning_is_none_of_their_time(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched(recipe="sft")
    send(
        client, launched, metrics(1, between=1.0, train_batch=3.0, step=4.0), metrics(1, save_checkpoint=4.0)
    )

    found = read(client, launched.job_id, "timing")

    saving = found["phases"][-1]
    assert (saving["phase"], saving["in_step"], saving["share"]) == ("save_checkpoint", False, 0.5)
    assert [each["phase"] for each in found["phases"]] == ["between", "train_batch", "save_checkpoint"]


def test_a_long_run_is_averaged_over_stretches(client: TestClient, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()
    send(client, launched, *(metrics(number, gen=float(number % 2), step=2.0) for number in range(1, 101)))

    found = read(client, launched.job_id, "timing", max_stretches=10)

    assert found["first_steps"] == list(range(1, 101, 10))
    assert found["phases"][0]["seconds"] == [0.5] * 10
    assert found["steps"] == 100


def test_a_job_without_timers_has_no_phases(client: TestClient, make_job: Callable[..., str]) -> None:
    found = read(client, make_job(), "timing")

    assert (found["phases"], found["bottleneck"], found["timeline_steps"]) == ([], None, [])


def test_the_timeline_of_the_nearest_step_is_read(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    response = {"group": "1-0", "start_s": 0.1, "end_s": 2.9, "tokens": 40}
    send(client, launched, timeline(4), timeline(8, responses=[response], response_count=1))

    assert read(client, launched.job_id, "timing")["timeline_steps"] == [4, 8]
    assert [read(client, launched.job_id, "timeline", step=step)["step"] for step in (0, 6, 7)] == [4, 4, 8]
    newest = read(client, launched.job_id, "timeline")
    assert (newest["step"], newest["attempt"], newest["responses"]) == (8, 1, [{**response, "parts": []}])
    assert newest["lanes"][0]["spans"] == [{"phase": "gen", "start_s": 0.0, "end_s": 3.0}]


def test_a_timeline_has_its_ranks_and_the_load_of_its_engines(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    load = {
        "name": "engine 0",
        "at_s": [0.0, 2.5],
        "running": [8, 0],
        "waiting": [3, 0],
        "kv_use": [0.4, 0.0],
    }
    lanes = [{"name": f"rank {rank}", "spans": []} for rank in range(2)]
    # Runs of an earlier release do not tell of their engines.
    send(client, launched, timeline(1), timeline(2, engines=[load], lanes=lanes))

    assert read(client, launched.job_id, "timeline", step=1)["engines"] == []
    found = read(client, launched.job_id, "timeline", step=2)
    assert (found["engines"], [lane["name"] for lane in found["lanes"]]) == ([load], ["rank 0", "rank 1"])


def test_a_timeline_has_a_lane_for_every_process_and_says_what_its_phases_are(
    client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    place = {"node": "node-a", "pid": 4711, "gpus": ["0"]}
    spans = [{"phase": phase, "start_s": 0.0, "end_s": 1.0} for phase in ("update_actor", "log_prob", "x")]
    lanes = [{"name": "worker 0", "spans": spans, "place": place}]
    parts = [{"phase": phase, "start_s": 0.0, "end_s": 1.0} for phase in ("queued", "generate", "tool")]
    response = {"group": "1-0", "start_s": 0.1, "end_s": 2.9, "tokens": 40, "parts": parts}
    send(client, launched, timeline(1, lanes=lanes, lane_count=200, responses=[response]), timeline(2))

    found = read(client, launched.job_id, "timeline", step=1)
    assert (found["lanes"], found["responses"], found["lane_count"]) == (lanes, [response], 200)
    assert found["groups"] == {
        "update_actor": "update", "log_prob": "log_probs", "x": "other",
        "queued": "waiting", "generate": "generation", "tool": "tools",
    }  # fmt: skip
    assert read(client, launched.job_id, "timeline", step=2)["lane_count"] == 1


def test_there_is_no_timeline_where_none_was_kept(client: TestClient, make_job: Callable[..., str]) -> None:
    assert read(client, make_job(), "timeline") is None


def test_timelines_are_bounded_and_those_behind_a_checkpoint_forgotten(
    database: Database, client: TestClient, make_launched: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = make_launched()
    monkeypatch.setattr(store, "MAX_TIMELINES", 2)
    send(client, launched, timeline(1), timeline(2), timeline(2, duration_s=9.0), timeline(3))

    kept = read(client, launched.job_id, "timing")["timeline_steps"]
    again = read(client, launched.job_id, "timeline", step=2)["duration_s"]
    with database.write() as session:
        store.truncate(session, job_id=launched.job_id, last_step=1)

    assert (kept, again) == ([1, 2], 9.0)
    assert read(client, launched.job_id, "timing")["timeline_steps"] == [1]


def test_a_timeline_with_too_much_is_refused(client: TestClient, make_launched: Callable[..., Any]) -> None:
    many = [{"group": "a", "start_s": 0.0, "end_s": 1.0, "tokens": 1}] * 513

    assert send(client, make_launched(), timeline(1, responses=many)).status_code == 422
